import type * as Fs from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { fileLog } from 'thinharness'
import type { DurableEvent } from 'thinharness'
import { temporaryFolder } from '../support/folder.js'

const calls = vi.hoisted(() => {
  // The package was loaded before this file, with the true functions.
  vi.resetModules()
  return [] as string[]
})

vi.mock('node:fs', async (importOriginal) => {
  const fs = await importOriginal<typeof Fs>()
  const counted = Object.entries(fs).map(([name, member]) => {
    if (typeof member !== 'function' || !/^[a-z]/.test(name)) return [name, member] as const
    const call = (...given: unknown[]): unknown => {
      calls.push(name)
      return (member as (...given: unknown[]) => unknown)(...given)
    }
    return [name, Object.assign(call, member)] as const
  })
  return Object.fromEntries(counted)
})

const place = temporaryFolder()
const ref = { kind: 'run', id: 'run_1' } as const

function eventAt(seq: number): DurableEvent {
  return { kind: 'tool_call_started', runId: ref.id, seq, at: '2026-11-27T18:00:00.000Z' } as unknown as DurableEvent
}

test.each([
  ['one event', 1],
  ['several events', 5],
])(
  'an append of %s by an owner is one write, and one look at each of the names of its file and its claim',
  async (_what, count) => {
    const log = fileLog(join(place, `log-${count}`))
    await log.claim(ref, 'owner', 60_000)
    await log.append(ref, [eventAt(1)], { owner: 'owner' })
    calls.length = 0
    const events = Array.from({ length: count }, (_, index) => eventAt(index + 2))
    await log.append(ref, events, { owner: 'owner' })
    expect(calls).toEqual(['statSync', 'writeSync', 'statSync'])
    await log.claim(ref, 'owner', 0)
  },
)
