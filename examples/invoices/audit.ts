import type { Booking } from './bank-server.js'
import type { Invoice } from './invoices.js'

/** Compares the books with the invoices: one line for each that is wrong, and a summary. */
export function audit(
  invoices: readonly Invoice[],
  books: readonly Booking[],
): { readonly lines: readonly string[]; readonly isRight: boolean } {
  const wrong = invoices.flatMap(({ invoice, to, cents }) => {
    const payments = books.filter((each) => each.invoice === invoice)
    const [first] = payments
    if (first === undefined) return [`invoice ${invoice}: NOT PAID`]
    if (payments.length > 1) return [`invoice ${invoice}: PAID ${payments.length} TIMES`]
    return first.cents === cents && first.to === to ? [] : [`invoice ${invoice}: PAID WRONGLY, ${first.cents} cents`]
  })
  const euros = (books.reduce((sum, { cents }) => sum + cents, 0) / 100).toFixed(2)
  const verdict = wrong.length === 0 ? 'each invoice was paid once' : `${wrong.length} are wrong`
  const summary = `${invoices.length} invoices, ${books.length} payments, ${euros} euros: ${verdict}`
  return { lines: [...wrong, summary], isRight: wrong.length === 0 }
}
