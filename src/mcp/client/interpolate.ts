import { isObject } from '../../util/json.js'

/**
 * `value` with `${NAME}` and `${NAME:-default}` in all its texts replaced from `env`. Throws a `RangeError` that names the
 * variable and the place when there is neither a value nor a default.
 */
export function interpolate(value: unknown, env: Readonly<Record<string, string | undefined>>, place = ''): unknown {
  if (typeof value === 'string') {
    return value.replace(VARIABLE, (_whole, name: string, fallback: string | undefined) => {
      const found = env[name]
      if (found !== undefined && (found !== '' || fallback === undefined)) return found
      if (fallback !== undefined) return fallback
      throw new RangeError(`\`${place}\` names the variable \`${name}\`, which is not set`)
    })
  }
  if (Array.isArray(value)) return value.map((each, index) => interpolate(each, env, `${place}[${index}]`))
  if (!isObject(value)) return value
  const entries = Object.entries(value)
  return Object.fromEntries(
    entries.map(([key, each]) => [key, interpolate(each, env, place === '' ? key : `${place}.${key}`)]),
  )
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g
