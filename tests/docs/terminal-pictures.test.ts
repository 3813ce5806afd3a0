import { readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { animatedTerminal } from '../../scripts/terminal-svg.js'

const folder = resolve(import.meta.dirname, '../../docs/pictures')
const recordings = readdirSync(folder).filter((name) => /^terminal-.*\.svg$/.test(name))

test('there is a recording of each program that a newcomer sees', () => {
  expect(recordings).toEqual(
    expect.arrayContaining(['chat', 'init', 'quickstart', 'run', 'view'].map((name) => `terminal-${name}.svg`)),
  )
})

test.each(recordings)('%s is small, for both themes, still for who wants it, and names no machine', (name) => {
  const svg = readFileSync(join(folder, name), 'utf8')
  expect(svg.length).toBeLessThan(60_000)
  expect(svg).toContain('prefers-color-scheme:dark')
  expect(svg).toContain('prefers-reduced-motion:reduce')
  expect(svg).not.toMatch(/<script|\son\w+=|https?:\/\/(?!www\.w3\.org\/2000\/svg)/)
  expect(svg).not.toMatch(/\/(tmp|home|root|work|Users)\//)
})

const ESCAPE = '\u001B'
const frame = (...lines: readonly string[]) => ({ lines, ms: 500 })

test('a line is drawn once, in its colours and at its column, and shown whenever it was on the screen', () => {
  const green = `  ${ESCAPE}[32mok${ESCAPE}[0m ${ESCAPE}[1m<b>&${ESCAPE}[22m`
  const svg = animatedTerminal([frame('first', green), frame(green), frame('first', green)], { columns: 20, rows: 2 })
  expect(svg.match(/>ok</g)).toHaveLength(1)
  expect(svg).toContain('class="f2">ok<')
  expect(svg).toContain('class="o">&lt;b&gt;&amp;<')
  // Two columns of 8.43 after the margin of 14.
  expect(svg).toContain('x="30.9"')
  expect(svg.match(/<use /g)).toHaveLength(5)
})

test.each([
  [`${ESCAPE}[38;5;196mred`, 'fill="#ff0000"'],
  [`${ESCAPE}[38;2;1;2;3mown`, 'fill="#010203"'],
  [`${ESCAPE}[7minverse`, 'class="b7"'],
  [`${ESCAPE}[2;36mquiet`, 'class="q f6"'],
  [`${ESCAPE}]8;;https://example.com${ESCAPE}\\link`, '>link<'],
])('%j is drawn with %s', (line, drawn) => {
  expect(animatedTerminal([frame(line)], { columns: 20, rows: 1 })).toContain(drawn)
})
