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

const DATE_CHARS = 10
const TIME = /^[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,18}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?$/

/** `undefined` for what is no date of the calendar, or no time of the day. */
export function parseDate(text: string): DateValue | undefined {
  const day = dayOf(text)
  if (day === undefined) return undefined
  const date = text.slice(0, DATE_CHARS)
  return text.length === DATE_CHARS ? { kind: 'date', date } : parseTime(text.slice(DATE_CHARS), date, day)
}

/**
 * Less than 0, 0, or more than 0. Where one has no time of day, the calendar dates are compared as they are written.
 * `undefined` when only one of two times names its offset: nobody knows then.
 */
export function compareDates(left: DateValue, right: DateValue): number | undefined {
  if (left.kind === 'date' || right.kind === 'date') return order(left.date, right.date)
  if (left.isAware !== right.isAware) return undefined
  return left.seconds - right.seconds || order(left.fraction, right.fraction)
}

/** An order of all dates, also of those that cannot truly be compared: a date is its midnight in UTC. */
export function orderDates(left: DateValue, right: DateValue): number {
  const [{ seconds, fraction }, other] = [instantOf(left), instantOf(right)]
  return seconds - other.seconds || order(fraction, other.fraction)
}

function instantOf(date: DateValue): { readonly seconds: number; readonly fraction: string } {
  return date.kind === 'time' ? date : { seconds: (dayOf(date.date) ?? 0) * 86_400, fraction: '' }
}

function parseTime(text: string, date: string, day: number): DateValue | undefined {
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
    seconds: day * 86_400 + Number(hour) * 3600 + Number(minute) * 60 + Number(second) - offset,
    fraction: fraction.replace(/0+$/, ''),
  }
}

/** Days since 1970 of the date at the beginning of a text. Reads digits one by one: rows come by the million. */
function dayOf(text: string): number | undefined {
  if (text.charAt(4) !== '-' || text.charAt(7) !== '-') return undefined
  const year = digitsAt(text, 0, 4)
  const month = digitsAt(text, 5, 7)
  const day = digitsAt(text, 8, DATE_CHARS)
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return undefined
  // Counted from March on, the leap day is the last of its year.
  const years = month > 2 ? year : year - 1
  const months = month > 2 ? month - 3 : month + 9
  const daysBeforeMonth = Math.floor((153 * months + 2) / 5)
  const leapDays = Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400)
  return years * 365 + leapDays + daysBeforeMonth + day - 719_469
}

/** A number of some digits; `-1` when there are others than digits. */
function digitsAt(text: string, start: number, end: number): number {
  let number = 0
  for (let at = start; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30
    if (!(digit >= 0 && digit <= 9)) return -1
    number = number * 10 + digit
  }
  return number
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function order(left: string, right: string): number {
  return left === right ? 0 : left < right ? -1 : 1
}
