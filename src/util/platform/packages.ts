import { createRequire } from 'node:module'

/** The version of this package; `0.0.0` if it was bundled into another program. */
export function ownVersion(): string {
  try {
    const { version } = createRequire(import.meta.url)('thinharness/package.json') as { readonly version: string }
    return version
  } catch {
    return '0.0.0'
  }
}

/** True if an import failed because the package is not installed, not because it is broken. */
export function isMissing(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return true
  // Of Vite and of workerd.
  return typeof message === 'string' && /^Could not resolve "|^No such module "/.test(message)
}
