import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { live } from './life.js'

/** Lives before those that count: they fill the caches of the process. */
const FIRST_LIVES = 20

/**
 * Loads everything that the package would load in the middle of a life: reading a file takes real time, and when it ends does
 * not depend on a seed.
 */
export async function preload(): Promise<void> {
  const folder = dirname(fileURLToPath(import.meta.resolve('thinharness')))
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'))
  // The command is a program: to load it is to run it.
  const files = all.filter((name) => !/\bcommand\b/.test(name))
  // Some need a package that is optional.
  for (const file of files) await import(pathToFileURL(join(folder, file)).href).catch(() => undefined)
  const { dependencies } = JSON.parse(readFileSync(join(folder, '../package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  for (const name of Object.keys(dependencies)) await import(name).catch(() => undefined)
  for (let seed = 1; seed <= FIRST_LIVES; seed++) await live(seed)
}
