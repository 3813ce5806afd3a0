import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from './process.js'

export interface PostgresServer {
  readonly url: string
  /** Stops it and starts it again, as a crash would. */
  readonly crash: (() => void) | null
  stop(): void
}

/** A server for the tests of one file: `TEST_POSTGRES_URL`, or one of its own; null where none can be had. */
export async function startPostgres(): Promise<PostgresServer | null> {
  const given = process.env['TEST_POSTGRES_URL']
  if (given !== undefined && given !== '') return { url: given, crash: null, stop: () => undefined }
  const programs = postgresPrograms()
  if (programs === null) return null
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'thinharness-postgres-'))
  const isRoot = process.getuid?.() === 0
  // It refuses to run as root.
  if (isRoot) chownSync(folder, idOf('-u'), idOf('-g'))
  const run = (program: string, ...args: readonly string[]): void => {
    const command = [join(programs, program), ...args]
    const [file = '', ...rest] = isRoot ? ['runuser', '-u', 'postgres', '--', ...command] : command
    execFileSync(file, rest, { stdio: 'ignore', cwd: folder })
  }
  const data = join(folder, 'data')
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c max_connections=200`
  const start = (): void => run('pg_ctl', '-D', data, '-w', '-l', join(folder, 'log'), '-o', options, 'start')
  const stop = (): void => run('pg_ctl', '-D', data, '-m', 'immediate', 'stop')
  run('initdb', '-D', data, '-A', 'trust', '-U', 'postgres', '--no-sync', '-N')
  start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    crash: () => {
      stop()
      start()
    },
    stop: () => {
      stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The folder of the server's programs. */
function postgresPrograms(): string | null {
  const found = (process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'initdb'))
  const installed = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const paths = [...found, ...installed.map((version) => `/usr/lib/postgresql/${version}/bin/initdb`)]
  const path = paths.find((each) => existsSync(each))
  return path === undefined ? null : dirname(realpathSync(path))
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
}
