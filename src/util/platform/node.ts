// Features of Node for code that also runs in browsers and in workers. The build replaces every `import … from 'node:…'` by a
// call of `moduleOrStub`: no bundler follows it, and a program without Node can load everything that it does not call.

import type * as Crypto from 'node:crypto'
import type { setMaxListeners } from 'node:events'
import type * as Fs from 'node:fs'
import type * as Os from 'node:os'
import type * as Path from 'node:path'
import type * as StringDecoders from 'node:string_decoder'

interface Modules {
  readonly 'node:crypto': typeof Crypto
  readonly 'node:events': { readonly setMaxListeners: typeof setMaxListeners }
  readonly 'node:fs': typeof Fs
  readonly 'node:os': typeof Os
  readonly 'node:path': typeof Path
  readonly 'node:string_decoder': typeof StringDecoders
}

/** The process of Node, Bun or Deno; empty in a browser, and some runtimes have a part of it only. */
export function hostProcess(): Partial<NodeJS.Process> {
  return (globalThis as { readonly process?: Partial<NodeJS.Process> }).process ?? {}
}

const loaded: { [Name in keyof Modules]?: Modules[Name] | undefined } = {}

/** A module of Node; undefined if the runtime has none. Kept: to find it costs Node half a microsecond each time. */
export function nodeModule<Name extends keyof Modules>(name: Name): Modules[Name] | undefined {
  return hostProcess().getBuiltinModule && (loaded[name] ??= process.getBuiltinModule(name))
}

/** A module of Node. If the runtime has none, everything in it is a function that throws when it is called. */
export function moduleOrStub<Name extends keyof Modules>(name: Name): Modules[Name] {
  return nodeModule(name) ?? (new Proxy({}, { get: () => missingFunction(name) }) as Modules[Name])
}

function missingFunction(name: string): () => never {
  return function unavailable() {
    throw new Error(`This runtime has no \`${name}\`: this part of thinharness needs Node, Deno or Bun.`)
  }
}

/** A variable of the environment; undefined if it is not set, if there are none, or if the program may not read it. */
export function environment(name: string): string | undefined {
  try {
    return hostProcess().env?.[name]
  } catch {
    // Deno without `--allow-env`.
    return undefined
  }
}

/** An absolute path; without Node, the path as it is. */
export function absolutePath(path: string): string {
  return nodeModule('node:path')?.resolve(path) ?? path
}

/** A warning of the process, or of the console if there is no process. */
export function warn(message: string, name: string): void {
  const host = hostProcess()
  // eslint-disable-next-line no-console -- the only place for a warning without a process
  if (host.emitWarning === undefined) console.warn(`${name}: ${message}`)
  else host.emitWarning(message, name)
}

/** Lets the process end while `timer` runs. */
export function unref(timer: NodeJS.Timeout | number): void {
  // A number in browsers.
  if (typeof timer !== 'number') timer.unref()
}

/**
 * Imports a package that contains a binary. Bundlers do not follow it, since they cannot read binaries: it is loaded at run time
 * from the folders `node_modules` above the program.
 */
export function importInstalled(name: string): Promise<unknown> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name)
}
