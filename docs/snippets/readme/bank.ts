import { appendFile, readFile } from 'node:fs/promises'

/** A bank whose payments are lines of a file. Like a real one, it can be asked about a payment by its idempotency key. */
export const bank = {
  async pay(cents: number, idempotencyKey: string): Promise<string> {
    const receipt = `R-${cents}`
    await appendFile('bank.txt', `${idempotencyKey} ${receipt}\n`)
    console.log(`bank: paid ${cents} cents, receipt ${receipt}`)
    return receipt
  },
  async find(idempotencyKey: string): Promise<string | undefined> {
    const payments = await readFile('bank.txt', 'utf8').catch(() => '')
    const payment = payments.split('\n').find((line) => line.startsWith(`${idempotencyKey} `))
    return payment?.split(' ')[1]
  },
}
