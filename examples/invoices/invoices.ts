import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Payment } from './bank.js'

export type Invoice = Payment

const SUPPLIERS = ['Assam Estates', 'Tin Works', 'Borealis Freight', 'Kestrel Paper'] as const
const COUNT = 12

/** Writes a folder of invoices: one text file each, as a scanner would. */
export function writeInvoices(folder: string): readonly Invoice[] {
  const invoices = Array.from({ length: COUNT }, (_, index) => ({
    invoice: String(index + 1).padStart(2, '0'),
    to: `NL${20 + (index % SUPPLIERS.length)}TEAX000${index % SUPPLIERS.length}`,
    cents: 1250 + index * 3719,
  }))
  mkdirSync(folder, { recursive: true })
  for (const [index, invoice] of invoices.entries()) {
    const supplier = SUPPLIERS[index % SUPPLIERS.length] ?? ''
    writeFileSync(join(folder, `${invoice.invoice}.txt`), textOf(supplier, invoice))
  }
  return invoices
}

function textOf(supplier: string, { invoice, to, cents }: Invoice): string {
  return `${supplier}

Invoice ${invoice}
Total: ${(cents / 100).toFixed(2)} euros
Please pay to: ${to}
`
}
