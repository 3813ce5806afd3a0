import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { followRun } from 'thinharness/ui/client'
import { Book } from '#viewer/reading/book.js'
import { dataOf } from '../viewer/support.js'
import { project, shell, start } from './shell.js'
import type { Ended } from './shell.js'

async function ran(folder: string, ...args: readonly string[]): Promise<Ended> {
  return shell(args, { folder })
}

async function bookIn(folder: string, file: string): Promise<Book> {
  const { header, logs } = await dataOf(readFileSync(join(folder, file), 'utf8'))
  return new Book(header, logs)
}

describe('view', () => {
  test('CL-17 writes the page of a run, says where it is and once what is in it, and changes nothing in the store', async () => {
    const folder = project()
    await ran(folder, 'run', 'look')
    const runs = join(folder, '.thinharness/runs')
    const before = statSync(runs).mtimeMs
    const { code, stdout, stderr } = await ran(folder, 'view', 'last', '--out', 'run.html')
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${join(folder, 'run.html')}\n` })
    expect(stderr).toBe('What is in the log is in the page: mind secrets before you pass it on.\n')
    expect(statSync(join(folder, 'run.html')).mode & 0o077).toBe(0)
    const book = await bookIn(folder, 'run.html')
    const { stdout: events } = await ran(folder, 'inspect', 'last', '--events')
    const runId = book.header.root ?? ''
    expect(new TextDecoder().decode(book.bytesOf(runId))).toBe(events)
    expect(statSync(runs).mtimeMs).toBe(before)
  })

  test('CL-17 writes the page of the newest runs, of a folder, of two runs and of a file', async () => {
    const folder = project()
    await ran(folder, 'run', 'look')
    await ran(folder, 'run', 'hello')
    writeFileSync(join(folder, 'events.jsonl'), (await ran(folder, 'inspect', 'last', '--events')).stdout)
    const rootsOf = async (...args: readonly string[]): Promise<string[]> => {
      const { code, stderr } = await ran(folder, 'view', ...args, '--out', 'page.html')
      expect({ code, stderr }).toMatchObject({ code: 0 })
      return (await bookIn(folder, 'page.html')).roots.flatMap(({ summary }) => summary?.prompt ?? [])
    }
    expect(await rootsOf()).toEqual(['hello', 'look'])
    expect(await rootsOf('--limit', '1')).toEqual(['hello'])
    expect(await rootsOf('.thinharness/runs')).toEqual(['hello', 'look'])
    expect(await rootsOf('events.jsonl')).toEqual(['hello'])
    const first = (await bookIn(folder, 'page.html')).roots[0]?.runId ?? ''
    const other = (await ran(folder, 'list', '--json')).stdout.split('\n')[1] ?? ''
    const { runId } = JSON.parse(other) as { readonly runId: string }
    expect(await rootsOf(first, '--diff', runId)).toEqual(['hello', 'look'])
    expect(await rootsOf('events.jsonl', '--diff', runId)).toEqual(['hello', 'look'])
    expect((await bookIn(folder, 'page.html')).header.compare).toBe(runId)
    expect((await ran(folder, 'view', 'last', '--out', '-')).stdout).toMatch(/^<!doctype html>/i)
  })

  test.each([
    [['view', 'run_nothing'], 5, 'There is no run `run_nothing`'],
    [['view', '--thread', 'nothing'], 5, 'The log has no conversation `nothing`.'],
    [['view', '--diff', 'last'], 2, 'thinharness view RUN --diff RUN'],
    [['view', 'last', '--approvals'], 2, '`--approvals` needs `--serve`'],
  ])('%j says what is missing', async (args, code, said) => {
    const folder = project()
    mkdirSync(join(folder, '.thinharness/runs'), { recursive: true })
    const ended = await ran(folder, ...args)
    expect(ended).toMatchObject({ code, stdout: '' })
    expect(ended.stderr).toContain(said)
  })

  test('VW-23 --serve follows a run of another process, whose person answers on the page, until Ctrl-C', async () => {
    const folder = project()
    const { code } = await ran(folder, 'run', 'pay', '--json')
    expect(code).toBe(3)
    const { child: server, ended } = start(['view', 'last', '--serve', '--approvals'], { folder })
    let text = ''
    const address = await new Promise<string>((resolve) =>
      server.stdout?.on('data', (piece: Buffer) => {
        text += piece.toString()
        if (text.includes('\n')) resolve(text.trim())
      }),
    )
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}\/$/)
    expect((await fetch(new URL('/', address))).status).toBe(404)
    const { header, logs } = await dataOf(await (await fetch(address)).text())
    const book = new Book(header, logs)
    const runId = header.root ?? ''
    expect(header.live).toEqual({ url: './', approvals: true })
    expect(book.run(runId)?.state).toBe('paused')
    const [call] = book.run(runId)?.turns[0]?.calls ?? []
    const answered = await fetch(`${address}runs/${runId}/answers`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ answers: [{ callId: call?.callId, approved: true }] }),
    })
    expect(answered.status).toBe(202)
    for await (const { cursor: _cursor, ...event } of followRun(`${address}runs/${runId}/events?children=1`, {
      after: book.cursorOf(runId),
    }))
      book.append(event as never)
    expect(book.run(runId)?.state).toBe('completed')
    server.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 0 })
    expect(existsSync(join(folder, 'run.html'))).toBe(false)
  })
})
