// Invoices that are paid once, although the program that pays them is killed again and again.
//   npm run example -- invoices                  kills it at random places, then compares the books of the bank
//   npm run example -- invoices --careless       the same with a tool that was written without care
//   npm run example -- invoices --seed 7 --kills 20
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openBank } from './bank-server.js'
import type { BankStep } from './bank-server.js'
import { audit } from './audit.js'
import { writeInvoices } from './invoices.js'
import { randomNumbers } from './random.js'

const { values } = parseArgs({
  options: {
    careless: { type: 'boolean', default: false },
    kills: { type: 'string', default: '8' },
    seed: { type: 'string', default: String(Date.now() % 1000) },
  },
})
const STEPS: Readonly<Record<BankStep, string>> = {
  asked: 'before the money of invoice # moved',
  booked: 'when the money of invoice # had moved, before the bank answered',
  answered: 'when the bank had answered about invoice #',
}

if (values.careless) {
  rmSync('careless', { recursive: true, force: true })
  mkdirSync('careless')
  process.chdir('careless')
}
const invoices = writeInvoices('invoices')
const random = randomNumbers(Number(values.seed))
/** What happens at each step of the bank. */
let onStep: (step: BankStep, invoice: string) => void = () => undefined
const bank = await openBank('books.jsonl', (step, invoice) => onStep(step, invoice))
console.log(`${invoices.length} invoices in ./invoices; seed ${values.seed}`)

for (let life = 1; ; life++) {
  const end = await oneLife(life <= Number(values.kills))
  console.log(`life ${life}: ${end}; ${bank.books().length} payments in the books`)
  if (end === 'ended') break
}
await bank.close()
const { lines, isRight } = audit(invoices, bank.books())
for (const line of lines) console.log(line)
process.exitCode = isRight ? 0 : 1

/** Runs the program that pays, and kills it with `kill -9` after a random number of steps of the bank. */
async function oneLife(isKilled: boolean): Promise<string> {
  const program = fileURLToPath(new URL('pay.js', import.meta.url))
  const child = spawn(process.execPath, [...process.execArgv, program], {
    env: { ...process.env, BANK_URL: bank.url, ...(values.careless && { CARELESS: '1' }) },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  let place = ''
  let left = random(1, 6)
  onStep = (step, invoice) => {
    if (!isKilled || --left !== 0) return
    place = STEPS[step].replace('#', invoice)
    child.kill('SIGKILL')
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return `killed ${place}`
  if (code !== 0) throw new Error(`The program that pays ended with ${code ?? signal}.`)
  return 'ended'
}
