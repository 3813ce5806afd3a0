import { spawn } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import { dirname, join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { bash } from '#toolbox/bash/bash.js'
import type { BashOptions } from '#toolbox/bash/options.js'
import { call, folderWith } from '../support.js'

/** Options that leave only one form. */
export const FORMS = [
  { form: 'bubblewrap', only: {} },
  { form: 'namespaces', only: { bubblewrap: '/nonexistent/bwrap' } },
] as const satisfies readonly { form: string; only: BashOptions }[]

/** The forms that this machine has; a machine without one says so. */
export async function formsHere(): Promise<(typeof FORMS)[number][]> {
  const here: (typeof FORMS)[number][] = []
  for (const each of FORMS) {
    const { metadata } = await call(bash({ root: await folderWith(), ...each.only }), { command: ':' })
    if (metadata['sandbox'] === each.form) here.push(each)
    else
      process.stderr.write(
        `The form \`${each.form}\` does not work here; its tests are skipped: ${JSON.stringify(metadata['sandbox_problem'])}\n`,
      )
  }
  return here
}

/** A program that does what `script` says. */
export async function program(name: string, script: string): Promise<string> {
  const path = join(await folderWith(), name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return path
}

/** A server of this machine, for as long as the test runs. */
export async function serverHere(at?: string): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end('hello from the host\n')
  })
  await new Promise<void>((resolve) =>
    at === undefined ? server.listen(0, '127.0.0.1', resolve) : server.listen(at, resolve),
  )
  onTestFinished(() => void server.close())
  return server
}

export function portOf(server: Server | { address(): unknown }): number {
  return (server.address() as AddressInfo).port
}

/** A process of the host with a secret in its environment; ended with the test. */
export function processWithSecret(secret: string): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    env: { SECRET: secret },
    stdio: 'ignore',
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child.pid ?? 0
}

/** Programs are found in this folder only, until the test ends. */
export function onlyPath(folder: string): void {
  vi.stubEnv('PATH', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
}
