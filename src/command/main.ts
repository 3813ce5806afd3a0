#!/usr/bin/env node
import Module, { createRequire } from 'node:module'
import { CommandError, EXIT, exitCodeOf } from './exit-codes.js'
import { perform } from './program.js'
import { Terminal } from './terminal/terminal.js'

// Commands are loaded when they are chosen; from Node 22.1 on, what they load stays compiled for the next time. Node 20 has no such cache.
void (Module as Partial<typeof Module>).enableCompileCache?.()

// A closed pipe (`| head`) is no failure.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed))

const { stdout, stderr, stdin, env } = process
const terminal = new Terminal({ stdout, stderr, stdin, env })
const { version } = createRequire(import.meta.url)('thinharness/package.json') as { readonly version: string }
try {
  process.exitCode = await perform(process.argv.slice(2), { terminal, version })
} catch (error) {
  terminal.say(error instanceof Error ? error.message : String(error))
  process.exitCode = error instanceof CommandError ? error.exitCode : await codeFor(error)
}

/** The code of an error of the library; anything else is a failure. */
async function codeFor(error: unknown): Promise<number> {
  const { codeOf } = await import('./follow-to-end.js')
  return exitCodeOf(codeOf(error))
}
