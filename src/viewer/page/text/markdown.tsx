import type { ComponentChildren } from 'preact'
import { plainText } from './formatted-text.js'

/** A small subset of Markdown, built as elements: headings, lists, quotes, code, emphasis and links. Everything else is text. */
export function Markdown({ text }: { readonly text: string }) {
  return <div class="prose">{blocksOf(text.split('\n'))}</div>
}

function blocksOf(lines: readonly string[]): ComponentChildren[] {
  const blocks: ComponentChildren[] = []
  for (let at = 0; at < lines.length;) {
    const [block, next] = blockAt(lines, at)
    if (block !== null) blocks.push(block)
    at = Math.max(next, at + 1)
  }
  return blocks
}

const FENCE = /^\s*(```|~~~)\s*(\S*)/
const HEADING = /^(#{1,6})\s+(.*)$/
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/
const QUOTE = /^>\s?(.*)$/
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/

function blockAt(lines: readonly string[], at: number): [ComponentChildren, number] {
  const line = lines[at] ?? ''
  if (line.trim() === '') return [null, at + 1]
  const fence = FENCE.exec(line)
  if (fence !== null) return codeAt(lines, at, fence[1] ?? '')
  const heading = HEADING.exec(line)
  if (heading !== null) {
    // Headings of a stranger's text are no headings of the page.
    return [<p class={`heading h${heading[1]?.length ?? 1}`}>{inline(heading[2] ?? '')}</p>, at + 1]
  }
  if (RULE.test(line)) return [<hr />, at + 1]
  if (QUOTE.test(line)) {
    const end = lastLineOf(lines, at, (each) => QUOTE.test(each))
    const inside = lines.slice(at, end).map((each) => QUOTE.exec(each)?.[1] ?? '')
    return [<blockquote>{blocksOf(inside)}</blockquote>, end]
  }
  if (ITEM.test(line)) return listAt(lines, at)
  const end = lastLineOf(
    lines,
    at,
    (each) => each.trim() !== '' && ![FENCE, HEADING, ITEM, QUOTE].some((one) => one.test(each)),
  )
  return [<p>{inline(lines.slice(at, Math.max(end, at + 1)).join('\n'))}</p>, Math.max(end, at + 1)]
}

function lastLineOf(lines: readonly string[], from: number, belongs: (line: string) => boolean): number {
  let end = from
  while (end < lines.length && belongs(lines[end] ?? '')) end += 1
  return end
}

function codeAt(lines: readonly string[], at: number, mark: string): [ComponentChildren, number] {
  const end = lastLineOf(lines, at + 1, (each) => !each.trim().startsWith(mark))
  return [<pre class="code">{plainText(lines.slice(at + 1, end).join('\n'))}</pre>, end + 1]
}

function listAt(lines: readonly string[], at: number): [ComponentChildren, number] {
  const end = lastLineOf(lines, at, (each) => ITEM.test(each) || (/^\s+\S/.test(each) && !FENCE.test(each)))
  const items: { level: number; text: string }[] = []
  for (const line of lines.slice(at, end)) {
    const item = ITEM.exec(line)
    const last = items.at(-1)
    if (item !== null) items.push({ level: Math.min(4, Math.floor((item[1]?.length ?? 0) / 2)), text: item[3] ?? '' })
    else if (last !== undefined) last.text += `\n${line.trim()}`
  }
  const children = items.map(({ level, text }) => <li class={`level${level}`}>{inline(text)}</li>)
  const isOrdered = /^\s*\d/.test(lines[at] ?? '')
  return [isOrdered ? <ol start={Number.parseInt(lines[at] ?? '1', 10)}>{children}</ol> : <ul>{children}</ul>, end]
}

/** Code, strong, emphasis, links; in this order at each place. Bounded, so that no text takes long. */
const INLINE =
  /(`{1,3})([^`]{1,2000})\1|\*\*([^*\n]{1,2000})\*\*|__([^_\n]{1,2000})__|\*([^*\s][^*\n]{0,2000})\*|!?\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>()"'`]{1,2000})/g

function inline(text: string): ComponentChildren[] {
  const found: ComponentChildren[] = []
  let at = 0
  for (const match of text.matchAll(INLINE)) {
    found.push(plainText(text.slice(at, match.index)), pieceOf(match))
    at = match.index + match[0].length
  }
  found.push(plainText(text.slice(at)))
  return found
}

function pieceOf([
  all,
  ,
  code,
  strong,
  alsoStrong,
  emphasis,
  label,
  target,
  address,
]: RegExpMatchArray): ComponentChildren {
  if (code !== undefined) return <code>{plainText(code)}</code>
  if (strong !== undefined || alsoStrong !== undefined) return <strong>{plainText(strong ?? alsoStrong ?? '')}</strong>
  if (emphasis !== undefined) return <em>{plainText(emphasis)}</em>
  const href = target ?? address
  if (href === undefined) return plainText(all)
  return (
    <OutsideLink href={href}>{label === undefined || label === '' ? plainText(href) : plainText(label)}</OutsideLink>
  )
}

/** A link that a stranger wrote: it says where it leads, and leads to pages of the web only. */
export function OutsideLink({ href, children }: { readonly href: string; readonly children: ComponentChildren }) {
  if (!/^https?:\/\//i.test(href)) return <span title={plainText(href)}>{children}</span>
  return (
    <a href={href} title={plainText(href)} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  )
}
