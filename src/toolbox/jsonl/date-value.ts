/** An ISO 8601 date, or date and time. */
export type DateValue =
  | { readonly kind: 'date'; readonly date: string }
  | {
      readonly kind: 'time'
      /** The calendar date as written, in whatever zone. */
      readonly date: string
      /** It has an offset from UTC. */
      readonly isAware: boolean
      /** Seconds since 1970; a time without an offset counts as UTC. */
      readonly seconds: number
      /** Digits of the fraction of a second, without zeros at the end. */
      readonly fraction: string
    }

const DATE_CHARS = 10
const DATE = /^\d{4}-\d{2}-\d{2}/
const TIME = /^[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,18}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?$/

/** `undefined` if the text is not a date of the calendar, or not a time of day. */
export function parseDate(text: string): DateValue | undefined {
  const [date = ''] = DATE.exec(text) ?? []
  const midnight = midnightOf(date)
  if (midnight === undefined) return undefined
  return text.length === DATE_CHARS ? { kind: 'date', date } : parseTime(text.slice(DATE_CHARS), date, midnight)
}

/**
 * Less than 0, 0, or more than 0. If one has no time of day, the calendar dates are compared as written. `undefined` if only
 * one of two times has an offset: their order is unknown.
 */
export function compareDates(left: DateValue, right: DateValue): number | undefined {
  if (left.kind === 'date' || right.kind === 'date') return order(left.date, right.date)
  if (left.isAware !== right.isAware) return undefined
  return left.seconds - right.seconds || order(left.fraction, right.fraction)
}

/** A total order of dates, including those that cannot be compared: a date counts as its midnight in UTC. */
export function orderDates(left: DateValue, right: DateValue): number {
  const [{ seconds, fraction }, other] = [instantOf(left), instantOf(right)]
  return seconds - other.seconds || order(fraction, other.fraction)
}

function instantOf(date: DateValue): { readonly seconds: number; readonly fraction: string } {
  return date.kind === 'time' ? date : { seconds: midnightOf(date.date) ?? 0, fraction: '' }
}

function parseTime(text: string, date: string, midnight: number): DateValue | undefined {
  const match = TIME.exec(text)
  if (match === null) return undefined
  const [, hour, minute, second = '0', fraction = '', zulu, sign, offsetHour = '0', offsetMinute = '0'] = match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59) return undefined
  const offset = (Number(offsetHour) * 3600 + Number(offsetMinute) * 60) * (sign === '-' ? -1 : 1)
  return {
    kind: 'time',
    date,
    isAware: zulu !== undefined || sign !== undefined,
    seconds: midnight + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offset,
    fraction: fraction.replace(/0+$/, ''),
  }
}

/** Seconds since 1970 at the beginning of a date, in UTC. `Date` accepts February 30 and makes it March 1. */
function midnightOf(date: string): number | undefined {
  const instant = new Date(`${date}T00:00:00Z`)
  return instant.getUTCDate() === Number(date.slice(8)) ? instant.getTime() / 1000 : undefined
}

function order(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}
