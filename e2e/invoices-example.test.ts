import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { audit } from '../examples/invoices/audit.js'
import type { Booking } from '../examples/invoices/bank-server.js'
import { temporaryFolder } from '../tests/support/folder.js'

const run = promisify(execFile)

interface Ended {
  readonly stdout: string
  readonly code: number
}

async function invoices(folder: string, ...args: readonly string[]): Promise<Ended> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, EXAMPLE_FOLDER: folder }
  const given = ['.build/examples/run.js', 'invoices', ...args]
  return run(process.execPath, given, { env }).then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: unknown) => error as Ended,
  )
}

function booksIn(folder: string): readonly Booking[] {
  const lines = readFileSync(join(folder, 'books.jsonl'), 'utf8').trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Booking)
}

const numbers = Array.from({ length: 12 }, (_, index) => String(index + 1).padStart(2, '0'))

test('invoices: each is paid once, although `kill -9` ends the program at random places', async () => {
  const folder = temporaryFolder()
  const { stdout, code } = await invoices(folder, '--kills', '6', '--seed', '4')
  expect(stdout).toMatch(/^life 1: killed .* invoice \d\d/m)
  expect(stdout.match(/: killed /g)?.length).toBeGreaterThan(2)
  expect(stdout).toContain('12 invoices, 12 payments, 2604.54 euros: each invoice was paid once\n')
  expect(code).toBe(0)
  expect(
    booksIn(folder)
      .map(({ invoice }) => invoice)
      .toSorted(),
  ).toEqual(numbers)
  // Once more: everything has been done.
  expect((await invoices(folder, '--kills', '0')).stdout).toContain('life 1: ended; 12 payments in the books')
})

test('invoices: a tool without care is caught, when it pays twice', async () => {
  const folder = temporaryFolder()
  const { stdout, code } = await invoices(folder, '--careless', '--kills', '4', '--seed', '2')
  const counts = numbers.map(
    (number) => booksIn(join(folder, 'careless')).filter((each) => each.invoice === number).length,
  )
  const twice = numbers.filter((_, index) => counts[index] !== 1)
  expect(twice.filter((number) => !new RegExp(`^invoice ${number}: PAID \\d+ TIMES$`, 'm').test(stdout))).toEqual([])
  expect(code).toBe(twice.length === 0 ? 0 : 1)
})

const invoice = { invoice: '01', to: 'NL20', cents: 100 }
const booking: Booking = { ...invoice, key: 'k', receipt: 'R-1' }

test.each<[string, readonly Booking[], string | null]>([
  ['paid once', [booking], null],
  ['paid twice', [booking, booking], 'invoice 01: PAID 2 TIMES'],
  ['not paid', [], 'invoice 01: NOT PAID'],
  ['another amount', [{ ...booking, cents: 1000 }], 'invoice 01: PAID WRONGLY, 1000 cents'],
  ['another account', [{ ...booking, to: 'NL21' }], 'invoice 01: PAID WRONGLY, 100 cents'],
])('invoices: the comparison with the books finds what was %s', (_name, books, line) => {
  const { lines, isRight } = audit([invoice], books)
  expect(isRight).toBe(line === null)
  expect(lines.slice(0, -1)).toEqual(line === null ? [] : [line])
})
