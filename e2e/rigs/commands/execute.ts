import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { homedir } from 'node:os'
import { parse } from 'unbash'

/** Marks a line of the trace. */
const MARK = '\u0001'
const TIME_MS = 5_000

/** A file system with bash and its libraries, no other program, no network, and nothing of this machine to change. */
const SANDBOX = [
  ...['--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--tmpfs', '/', '--dev', '/dev'],
  ...['--ro-bind', '/bin/bash', '/bin/bash', '--ro-bind', '/lib', '/lib', '--ro-bind-try', '/lib64', '/lib64'],
  ...['--dir', '/tmp', '--setenv', 'PATH', '/nothing', '--setenv', 'HOME', homedir(), '--chdir', '/tmp'],
]

/** A command that bash does not find succeeds or fails, as `$1` says; the trace goes where the line cannot write. */
const HARNESS = `
exec 9>&1 1>/dev/null 2>/dev/null </dev/null
BASH_XTRACEFD=9
status=$1 line=$2
PS4=$'\\001'
ulimit -t 2 -f 2000 -u 200
command_not_found_handle() { builtin printf '\\001H %q\\n' "$1" >&9; return $MARKED_STATUS; }
export MARKED_STATUS=$status
set --
set -x
eval "$line"
`

/** The names of the commands that bash executes for a line; both if programs succeed and if they fail. */
export async function executedBy(line: string): Promise<ReadonlySet<string>> {
  const traces = [await traceOf(line, 0), await traceOf(line, 1)]
  return new Set(traces.flatMap(namesIn))
}

async function traceOf(line: string, status: number): Promise<string> {
  const args = [...SANDBOX, '/bin/bash', '--norc', '--noprofile', '-c', HARNESS, 'bash', String(status), line]
  const child = spawn('bwrap', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const chunks: Buffer[] = []
  let size = 0
  child.stdout.on('data', (chunk: Buffer) => {
    if ((size += chunk.length) < 2_000_000) chunks.push(chunk)
    else child.kill('SIGKILL')
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), TIME_MS)
  await once(child, 'close')
  clearTimeout(timer)
  return Buffer.concat(chunks).toString('utf8')
}

const SYNTAX = /^(?:for|case|select|\[\[|\(\() /

function namesIn(trace: string): readonly string[] {
  const lines = trace.split('\n').filter((each) => each.startsWith(MARK))
  return lines.slice(1).flatMap((marked) => {
    const text = marked.replace(/^\u0001+/, '')
    if (text === '' || SYNTAX.test(text) || OWN.test(text)) return []
    const name = nameIn(text.startsWith('H ') ? text.slice(2) : text)
    return name === null ? [] : [name]
  })
}

/** The trace of the harness itself. */
const OWN = /^(?:return [01]|builtin printf '\\001H .*)$/

/** The first word of a traced command, which bash has quoted. */
function nameIn(text: string): string | null {
  const [first] = parse(text).commands
  if (first?.command.type !== 'Command') return null
  return first.command.name?.value ?? null
}
