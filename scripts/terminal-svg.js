// An animated SVG of frames of a terminal: text with the colours of ANSI, in the colours of the reader's system, dark or light.

const [CELL, LINE, SIZE, PAD, BAR] = [8.43, 18, 14, 14, 30]

/** `frames`: the lines of a screen as `tmux capture-pane -e` gives them, and how long they are shown, in ms. */
export function animatedTerminal(frames, { columns, rows }) {
  const total = frames.reduce((sum, { ms }) => sum + ms, 0)
  const [width, height] = [Math.round(columns * CELL + 2 * PAD), rows * LINE + PAD + BAR]
  /** Each line that is ever shown, once. */
  const lines = new Map()
  /** When each of them is shown, by row. */
  const uses = []
  for (let row = 0; row < rows; row++) {
    for (const { text, from, to } of spansOf(frames, row)) {
      const drawn = drawnLine(text)
      if (drawn === '') continue
      if (!lines.has(drawn)) lines.set(drawn, `l${lines.size.toString(36)}`)
      uses.push({ id: lines.get(drawn), y: BAR + (row + 1) * LINE - 4, from: from / total, to: to / total })
    }
  }
  const times = new Map()
  const styleOf = ({ from, to }) => {
    const key = `${percent(from)} ${percent(to)}`
    if (!times.has(key)) times.set(key, `t${times.size.toString(36)}`)
    return times.get(key)
  }
  const shown = uses.map((use) => {
    const isAlways = use.from === 0 && use.to >= 1
    const isLast = use.to >= 1 ? ' z' : ''
    return `<use href="#${use.id}" y="${use.y}"${isAlways ? '' : ` class="h ${styleOf(use)}${isLast}"`}/>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A recording of a terminal">
<style>${STYLE}.h{visibility:hidden;animation:${(total / 1000).toFixed(2)}s step-end infinite}${[...times].map(([key, name]) => keyframes(name, key)).join('')}@media(prefers-reduced-motion:reduce){.h{animation:none!important}.z{visibility:visible}}</style>
<rect class="w" width="${width}" height="${height}" rx="8"/><circle class="d" cx="18" cy="16" r="5"/><circle class="d" cx="36" cy="16" r="5"/><circle class="d" cx="54" cy="16" r="5"/>
<defs>${[...lines].map(([drawn, id]) => `<g id="${id}">${drawn}</g>`).join('')}</defs>
${shown.join('')}
</svg>
`
}

function keyframes(name, key) {
  const [from, to] = key.split(' ')
  const start = from === '0%' ? '0%{visibility:visible}' : `${from}{visibility:visible}`
  const end = to === '100%' ? '' : `${to}{visibility:hidden}`
  return `@keyframes ${name}{${start}${end}}.${name}{animation-name:${name}}`
}

function percent(part) {
  return `${Number((part * 100).toFixed(2))}%`
}

/** What a row shows, and from when to when. */
function spansOf(frames, row) {
  const spans = []
  let at = 0
  for (const { lines, ms } of frames) {
    const text = lines[row] ?? ''
    const last = spans.at(-1)
    if (last?.text === text) last.to = at + ms
    else spans.push({ text, from: at, to: at + ms })
    at += ms
  }
  return spans
}

/** The text of a line, in pieces of one colour. */
function drawnLine(line) {
  let [column, drawn] = [0, '']
  for (const { text, style } of piecesOf(line)) {
    const cells = [...text].length
    const [x, length] = [PAD + column * CELL, cells * CELL]
    if (style.background !== null)
      drawn += `<rect x="${fixed(x)}" y="-14" width="${fixed(length)}" height="${LINE}"${fill(style.background, 'b')}/>`
    const visible = text.trimEnd()
    const start = visible.length - visible.trimStart().length
    const words = visible.trimStart()
    if (words !== '') {
      const classes = [style.bold && 'o', style.dim && 'q', style.italic && 'i'].filter(Boolean)
      const at = `x="${fixed(x + start * CELL)}" textLength="${fixed([...words].length * CELL)}"`
      drawn += `<text ${at}${fill(style.color, 'f', classes)}>${escaped(words)}</text>`
    }
    column += cells
  }
  return drawn
}

function fixed(value) {
  return String(Math.round(value * 10) / 10)
}

function fill(color, kind, classes = []) {
  const isNamed = typeof color === 'number'
  const names = [...classes, ...(isNamed ? [`${kind}${color}`] : [])]
  const named = names.length === 0 ? '' : ` class="${names.join(' ')}"`
  return typeof color === 'string' ? `${named} fill="${color}"` : named
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll(/ {2}/g, ' \u00a0')
}

const PLAIN = { color: null, background: null, bold: false, dim: false, italic: false, inverse: false }

function piecesOf(line) {
  const pieces = []
  let style = PLAIN
  // Links and other commands of the terminal are left out.
  const text = line
    .replaceAll(/\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g, '')
    .replaceAll(/\u001b[()][0-9A-B]|[\u000e\u000f]/g, '')
  for (const [, codes, words] of text.matchAll(/\u001b\[([\d;]*)m|([^\u001b]+)/g)) {
    if (words === undefined) style = styleAfter(style, (codes ?? '').split(';').map(Number))
    else pieces.push({ text: words, style: shownStyle(style) })
  }
  const merged = []
  for (const piece of pieces) {
    const last = merged.at(-1)
    if (last !== undefined && JSON.stringify(last.style) === JSON.stringify(piece.style)) last.text += piece.text
    else merged.push(piece)
  }
  return merged
}

function shownStyle({ inverse, color, background, ...style }) {
  return inverse
    ? { ...style, color: background ?? 'var(--g)', background: color ?? 7 }
    : { ...style, color, background }
}

function styleAfter(before, codes) {
  let style = before
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index]
    if (code === 0) style = PLAIN
    else if (code === 1) style = { ...style, bold: true }
    else if (code === 2) style = { ...style, dim: true }
    else if (code === 3) style = { ...style, italic: true }
    else if (code === 7) style = { ...style, inverse: true }
    else if (code === 22) style = { ...style, bold: false, dim: false }
    else if (code === 23) style = { ...style, italic: false }
    else if (code === 27) style = { ...style, inverse: false }
    else if (code === 39) style = { ...style, color: null }
    else if (code === 49) style = { ...style, background: null }
    else if (code >= 30 && code <= 37) style = { ...style, color: code - 30 }
    else if (code >= 90 && code <= 97) style = { ...style, color: code - 82 }
    else if (code >= 40 && code <= 47) style = { ...style, background: code - 40 }
    else if (code >= 100 && code <= 107) style = { ...style, background: code - 92 }
    else if (code === 38 || code === 48) {
      const [color, used] =
        codes[index + 1] === 5 ? [palette(codes[index + 2]), 2] : [rgb(codes.slice(index + 2, index + 5)), 4]
      style = { ...style, [code === 38 ? 'color' : 'background']: color }
      index += used
    }
  }
  return style
}

/** A colour of the palette of 256. */
function palette(number) {
  if (number < 16) return number
  if (number > 231) return rgb(Array(3).fill(8 + (number - 232) * 10))
  const level = (value) => (value === 0 ? 0 : 55 + value * 40)
  const cube = number - 16
  return rgb([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)])
}

function rgb(parts) {
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

const LIGHT = ['#3b3b45', '#b3261e', '#1a6f3c', '#8a5a00', '#0b57d0', '#7b2fb5', '#00687a', '#1b1b1f']
const LIGHT_BRIGHT = ['#6f6f7a', '#c5362d', '#207f47', '#9a6600', '#2a6be0', '#8d40c8', '#00798d', '#1b1b1f']
const DARK = ['#8a8a96', '#f2b8b5', '#8fd6a8', '#e8c46c', '#a8c7fa', '#d9b2f5', '#7fd3e0', '#ececf1']
const DARK_BRIGHT = ['#9a9aa6', '#f7c9c6', '#a5e2ba', '#f0d28a', '#bdd5fb', '#e4c8f8', '#98dee9', '#ffffff']

function colors(list, from) {
  return list.map((color, index) => `.f${index + from}{fill:${color}}.b${index + from}{fill:${color}}`).join('')
}

const STYLE =
  `svg{--g:#fff}text{font:${SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1b1f;white-space:pre}` +
  `.w{fill:#fff;stroke:#c9c9d4}.d{fill:#c9c9d4}.o{font-weight:700}.q{opacity:.66}.i{font-style:italic}${colors(LIGHT, 0)}${colors(LIGHT_BRIGHT, 8)}` +
  `@media(prefers-color-scheme:dark){svg{--g:#17171b}text{fill:#ececf1}.w{fill:#17171b;stroke:#45454f}.d{fill:#45454f}${colors(DARK, 0)}${colors(DARK_BRIGHT, 8)}}`
