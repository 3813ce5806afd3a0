import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hasEnded, newOwner } from '#util/platform/owner.js'

/** An owner as the process `pid` would be named, if it had begun at `start`. */
function ownerOf(pid: number, start: string): string {
  const [place, , , random] = newOwner().split('/')
  return [place, pid, start, random].join('/')
}

async function endedPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  return child.pid!
}

describe('the name of an owner', () => {
  test('160 it differs each time, and names process and host', () => {
    const [left, right] = [newOwner(), newOwner()]
    expect(left).not.toBe(right)
    expect(left.split('/').slice(0, 3)).toEqual(right.split('/').slice(0, 3))
    expect(left.split('/')[1]).toBe(String(process.pid))
    expect([hasEnded(left), hasEnded(right)]).toEqual([false, false])
  })

  test('160 the owner of a process that has ended is recognized as gone', async () => {
    expect(hasEnded(ownerOf(await endedPid(), '1'))).toBe(true)
  })

  test.skipIf(!existsSync('/proc/self/stat'))('160 it is not confused with a later process of the same number', () => {
    expect(hasEnded(ownerOf(process.ppid, '1'))).toBe(true)
  })

  test('160 an owner on another host, or an invalid one, is never considered gone', async () => {
    const pid = await endedPid()
    const [, ...rest] = ownerOf(pid, '1').split('/')
    const strange = ['', 'ann', 'a/b/c/d', `elsewhere/${rest.join('/')}`, `${ownerOf(pid, '1')}/more`, ownerOf(-1, '1')]
    expect(strange.map(hasEnded)).toEqual(strange.map(() => false))
  })
})
