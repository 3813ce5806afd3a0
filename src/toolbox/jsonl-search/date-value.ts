/** An ISO 8601 date, or date and time, as it was written. */
export type DateValue =
  | { readonly kind: 'date'; readonly date: string }
  | {
      readonly kind: 'time'
      /** The calendar date as written, in whatever zone. */
      readonly date: string
      /** It names its offset from UTC. */
      readonly isAware: boolean
      /** Seconds since 1970; of a naive time, as if it were UTC. */
      readonly seconds: number
      /** Digits behind the second, without zeros at the end. */
      readonly fraction: string
    }

const FORM =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,18}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?)?$/

/** `undefined` for what is no date of the calendar, or no time of the day. */
export function parseDate(text: string): DateValue | undefined {
  const parts = FORM.exec(text)
  if (parts === null) return undefined
  const [, year, month, day, hour, minute = '0', second = '0', fraction = '', zulu, sign] = parts
  const date = `${year ?? ''}-${month ?? ''}-${day ?? ''}`
  const midnight = Date.parse(`${date}T00:00:00Z`)
  // A day that is not in the calendar is refused, or taken for one of the next month.
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return undefined
  if (hour === undefined) return { kind: 'date', date }
  const [offsetHours, offsetMinutes] = [Number(parts[10] ?? 0), Number(parts[11] ?? 0)]
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  if (offsetHours > 23 || offsetMinutes > 59) return undefined
  const offset = (offsetHours * 60 + offsetMinutes) * (sign === '-' ? -60 : 60)
  const ofDay = Number(hour) * 3600 + Number(minute) * 60 + Number(second)
  return {
    kind: 'time',
    date,
    isAware: zulu !== undefined || sign !== undefined,
    seconds: midnight / 1000 + ofDay - offset,
    fraction: fraction.replace(/0+$/, ''),
  }
}

/**
 * Less than 0, 0, or more than 0. Where one has no time of day, the calendar dates are compared as they are written.
 * `undefined` when only one of two times names its offset: nobody knows then (spec §6.7).
 */
export function compareDates(left: DateValue, right: DateValue): number | undefined {
  if (left.kind === 'date' || right.kind === 'date') return order(left.date, right.date)
  if (left.isAware !== right.isAware) return undefined
  return left.seconds - right.seconds || order(left.fraction, right.fraction)
}

function order(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}
