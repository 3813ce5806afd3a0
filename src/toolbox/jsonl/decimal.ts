/** A decimal number of any size, compared without loss. */
export interface Decimal {
  /** The nearest double: different doubles decide a comparison, equal ones do not. */
  readonly double: number
  /** `-1`, `0` or `1`. */
  readonly sign: number
  /** Significant digits, without zeros at either end. */
  readonly digits: string
  /** The number is 0.`digits` times ten to this power. */
  readonly exponent: number
}

/** Parses a finite decimal such as `-12.50`, `.5` or `1e6`; `undefined` for anything else. */
export function parseDecimal(text: string): Decimal | undefined {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,15}))?$/.exec(text) ?? []
  if (whole === '' && fraction === '') return undefined
  const all = whole + fraction
  const zeros = all.length - all.replace(/^0+/, '').length
  const digits = withoutZerosAtEnd(all.slice(zeros))
  if (digits === '') return { double: 0, sign: 0, digits, exponent: 0 }
  return {
    double: Number(text),
    sign: sign === '-' ? -1 : 1,
    digits,
    exponent: Number(power) + whole.length - zeros,
  }
}

/** Less than 0, 0, or more than 0, as `left` is less than, equal to or greater than `right`. */
export function compareDecimals(left: Decimal, right: Decimal): number {
  if (left.sign !== right.sign) return left.sign - right.sign
  if (left.exponent !== right.exponent) return (left.exponent - right.exponent) * left.sign
  if (left.digits === right.digits) return 0
  // With equal exponents, digits compare like the digits of a fraction.
  return left.digits < right.digits ? -left.sign : left.sign
}

/** Not with `/0+$/`, which takes quadratic time for long runs of zeros. */
function withoutZerosAtEnd(digits: string): string {
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end--
  return digits.slice(0, end)
}
