const shown = new WeakMap<object, object>()

/** Plain data that cannot be changed by whoever gets it, at any depth. Frozen data, and anything that is not plain, is given as it is. */
export function readOnly<T>(value: T): T {
  if (typeof value !== 'object' || value === null || !isOpen(value)) return value
  const known = shown.get(value)
  if (known !== undefined) return known as T
  const proxy = new Proxy<object>(value, HANDLER)
  shown.set(value, proxy)
  return proxy as T
}

function isOpen(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === Array.prototype) && !Object.isFrozen(value)
}

const HANDLER: ProxyHandler<object> = {
  get(target, name) {
    const member: unknown = Reflect.get(target, name)
    const own = Reflect.getOwnPropertyDescriptor(target, name)
    // A proxy has to give the value of a member that cannot change.
    return own?.configurable === false && own.writable === false ? member : readOnly(member)
  },
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  setPrototypeOf: refuse,
  preventExtensions: refuse,
}

function refuse(_target: object, name?: unknown): never {
  const member = typeof name === 'string' ? `: \`${name}\` cannot be changed` : ''
  throw new TypeError(`What a run shows of itself is read-only${member}.`)
}
