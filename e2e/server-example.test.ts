import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { temporaryFolder } from '../tests/support/folder.js'
import { times, timeLimit } from '../tests/support/length.js'

const folder = temporaryFolder()
const ORDERS = times(20, 100)
const orders = Array.from({ length: ORDERS }, (_, index) => String(index + 1))
const started: ChildProcess[] = []
afterAll(() => started.filter(({ exitCode }) => exitCode === null).forEach((child) => child.kill('SIGKILL')))

interface Server {
  readonly url: string
  readonly lines: readonly string[]
  readonly stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<number | null>
}

async function start(): Promise<Server> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: join(folder, 'server'), PORT: '0' }
  const child = spawn(process.execPath, ['.build/examples/run.js', 'server'], { env })
  started.push(child)
  const lines: string[] = []
  const ended = once(child, 'close')
  const port = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      lines.push(line)
      const [, found] = /^listening on port (\d+)$/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    void ended.then(() => reject(new Error(`The server ended: ${errors}`)))
  })
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    await ended
    return child.exitCode
  }
  return { url: `http://127.0.0.1:${await port}`, lines, stop }
}

function shipped(): readonly string[] {
  const path = join(folder, 'server', 'shipped.txt')
  return existsSync(path) ? readFileSync(path, 'utf8').trimEnd().split('\n') : []
}

async function ask(url: string, order: string, method: 'GET' | 'POST'): Promise<string> {
  return (await (await fetch(`${url}/orders/${order}`, { method })).text()).trimEnd()
}

test(
  'server: runs in progress are left at SIGTERM and continued by the next process; each ends once, and nothing is shipped twice',
  async () => {
    const first = await start()
    await Promise.all(orders.map((order) => ask(first.url, order, 'POST')))
    while (shipped().length < ORDERS) await delay(5)
    expect(await first.stop('SIGTERM')).toBe(0)
    expect(first.lines.at(-1)).toBe('closed')
    const left = first.lines.filter((line) => line.endsWith(': left'))
    expect(left.length).toBeGreaterThan(0)
    const before = shipped()

    const second = await start()
    // A job that is delivered again begins no second run.
    await ask(second.url, '1', 'POST')
    while (second.lines.filter((line) => line.endsWith('is shipped.')).length < left.length) await delay(5)
    for (const order of orders) expect([order, await ask(second.url, order, 'GET')]).toEqual([order, 'completed'])
    expect(await second.stop('SIGTERM')).toBe(0)

    const parts = orders.flatMap((order) => ['1', '2', '3'].map((part) => `${order}/${part}`))
    expect(shipped().toSorted()).toEqual(parts.toSorted())
    expect(shipped().slice(0, before.length)).toEqual(before)
    const ends = [...first.lines, ...second.lines].filter((line) => line.endsWith('is shipped.'))
    expect(ends.toSorted()).toEqual(orders.map((order) => `order ${order}: Order ${order} is shipped.`).toSorted())
  },
  timeLimit(120_000),
)
