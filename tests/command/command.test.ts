import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scriptedProvider } from 'thinharness/testing'
import { PROGRAM, project, script, shell, slowCall, start } from './shell.js'
import type { Ended } from './shell.js'

const ESCAPE = '\u001B'

async function ran(folder: string, ...args: readonly string[]): Promise<Ended> {
  return shell(args, { folder })
}

/** The run id that is the last line on stderr. */
function runIdIn({ stderr }: Ended): string {
  return stderr.trimEnd().split('\n').at(-1) ?? ''
}

function eventsIn({ stdout }: Ended): Record<string, unknown>[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** A server is ended when it has said where it is. */
function served(example: string, folder: string, env: Readonly<Record<string, string>>): Promise<Ended> {
  const { child, ended } = start(example.split(' '), { folder, env })
  child.stdout?.once('data', () => child.kill('SIGTERM'))
  return ended
}

/** All files below a folder with what is in them. */
function filesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(join(folder, name)).isFile())
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

describe('wrong use', () => {
  test.each([
    [['rnu', 'x'], 'Did you mean run?'],
    [['list', '--limti', '3'], 'Did you mean --limit?'],
    [['run'], "missing required argument 'prompt'"],
    [['run', 'a', 'b'], 'too many arguments'],
    [['list', '--limit', 'many'], 'Expected a whole number.'],
    [['run', 'x', '--max-cost', '-1'], 'Expected a number above 0.'],
  ])('CL-01 %j is refused with what was meant', async (args, said) => {
    const { code, stdout, stderr } = await shell(args, { folder: project() })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(said)
  })

  test.each([['--help'], ['run', '--help'], ['--version']])('CL-01 %s is on stdout', async (...args) => {
    const { code, stdout, stderr } = await shell(args, { folder: project() })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).not.toBe('')
  })

  test('CL-12 without a key it says which variable to set, and nothing is written', async () => {
    const folder = project({ config: null })
    const { code, stderr } = await ran(folder, 'run', 'hello')
    expect(code).toBe(2)
    expect(stderr).toContain('`ANTHROPIC_API_KEY`')
    const named = await ran(folder, 'run', 'hello', '--model', 'openai:gpt-5.5')
    expect(named.code).toBe(2)
    expect(named.stderr).toContain('`OPENAI_API_KEY`')
    expect(existsSync(join(folder, '.thinharness'))).toBe(false)
  })
})

describe('a run', () => {
  test('CL-02 CL-05 its answer alone is on stdout, and the id of the run is the last line on stderr', async () => {
    const folder = project()
    const ended = await ran(folder, 'run', 'look here')
    expect(ended).toMatchObject({ code: 0, stdout: 'Answer to: look here\n' })
    expect(ended.stderr).toContain('✓ look 1')
    expect(runIdIn(ended)).toMatch(/^run_[0-9a-f]{32}$/)
    expect(ended.stderr).not.toContain(ESCAPE)
  })

  test('CL-02 the code says how it ended', async () => {
    const folder = project()
    const codes = await Promise.all(
      [['fail'], ['pay'], ['loop', '--max-requests', '3'], ['hello', '--model', 'nonsense']].map(
        async ([prompt = '', ...flags]) => (await ran(folder, 'run', prompt, ...flags)).code,
      ),
    )
    expect(codes).toEqual([1, 3, 4, 2])
    expect((await ran(folder, 'inspect', 'run_none')).code).toBe(5)
  })

  test('CL-03 --json prints the events as the log has them, and the result as the last line', async () => {
    const folder = project()
    const ended = await ran(folder, 'run', '--json', 'look here')
    const events = eventsIn(ended)
    const runId = String(events[0]?.['runId'])
    const stored = readFileSync(join(folder, '.thinharness', 'runs', `${runId}.jsonl`), 'utf8')
    expect(ended.stdout.startsWith(stored)).toBe(true)
    expect(events.at(-1)).toMatchObject({ kind: 'result', status: 'completed', output: 'Answer to: look here' })
    const deltas = eventsIn(await ran(folder, 'run', '--json', '--deltas', 'look here'))
    expect(deltas.map(({ kind }) => kind)).toContain('text_delta')
  })

  test('CL-04 colours are for terminals, and for whoever forces them', async () => {
    const folder = project()
    expect((await shell(['run', 'look'], { folder, env: { FORCE_COLOR: '1' } })).stderr).toContain(`${ESCAPE}[`)
    expect((await shell(['run', 'look'], { folder, env: { NO_COLOR: '1' } })).stderr).not.toContain(ESCAPE)
  })

  test('the prompt - is standard input, and an empty one is refused', async () => {
    const folder = project()
    expect((await shell(['run', '-'], { folder, input: 'from a pipe' })).stdout).toBe('Answer to: from a pipe\n')
    expect((await shell(['run', '-'], { folder })).code).toBe(2)
  })

  test('--resume-from goes on with the conversation of a run', async () => {
    const folder = project()
    const first = runIdIn(await ran(folder, 'run', 'one'))
    expect((await ran(folder, 'run', 'two', '--resume-from', first)).stdout).toBe('Answer to: one two\n')
  })

  test('--output asks for an answer of a schema', async () => {
    const config = `import { ScriptedModel } from 'thinharness/testing'
export default { model: new ScriptedModel().always(() => ({ calls: [{ name: 'final_result', arguments: { legs: 8 } }] })) }`
    const folder = project({ config })
    const schema = { type: 'object', properties: { legs: { type: 'integer' } }, required: ['legs'] }
    writeFileSync(join(folder, 'schema.json'), JSON.stringify(schema))
    const { stdout } = await ran(folder, 'run', 'spiders', '--output', 'schema.json')
    expect(JSON.parse(stdout)).toEqual({ legs: 8 })
    writeFileSync(join(folder, 'schema.json'), 'no schema')
    expect((await ran(folder, 'run', 'spiders', '--output', 'schema.json')).code).toBe(2)
  })

  test('CL-13 no code of the folder is loaded but the config file', async () => {
    const folder = project()
    writeFileSync(join(folder, 'other.js'), 'throw new Error("loaded")')
    expect((await ran(folder, 'run', 'hello')).code).toBe(0)
    const named = await ran(folder, 'run', 'hello', '--config', 'other.js')
    expect(named).toMatchObject({ code: 1, stdout: '' })
    expect(named.stderr).toContain('loaded')
    expect((await ran(folder, 'run', 'hello', '--config', 'none.js')).code).toBe(2)
  })

  test('CL-10 Ctrl-C cancels it and waits for its end; the log is readable and retry goes on', async () => {
    const folder = project()
    const { child, ended } = start(['run', 'slow'], { folder })
    await slowCall(folder)
    child.kill('SIGINT')
    const end = await ended
    expect(end.code).toBe(130)
    expect((await ran(folder, 'inspect', runIdIn(end))).stdout).toContain('cancelled')
    writeFileSync(join(folder, 'go'), '')
    expect(await ran(folder, 'retry', runIdIn(end))).toMatchObject({ code: 0, stdout: 'Answer to: slow\n' })
  })
})

describe('people', () => {
  test('CL-14 without answers a script gets what waits as JSON', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'pay'))
    const waiting = await ran(folder, 'resume', 'last')
    expect(waiting.code).toBe(3)
    const [item] = JSON.parse(waiting.stdout) as { callId: string; toolName: string }[]
    expect(item?.toolName).toBe('pay')
    const paid = await ran(folder, 'resume', runId, '--approve', item?.callId ?? '')
    expect(paid).toMatchObject({ code: 0, stdout: 'Answer to: pay\n' })
    expect(paid.stderr).toContain('✓ pay 5')
    expect((await ran(folder, 'resume', runId)).code).toBe(2)
  })

  test('a run that goes on keeps the limits that it was begun with, unless others are given', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'pay and loop', '--max-requests', '2'))
    const [item] = JSON.parse((await ran(folder, 'resume', runId)).stdout) as { callId: string }[]
    const ended = await ran(folder, 'resume', runId, '--approve', item?.callId ?? '')
    expect(ended.code).toBe(4)
    expect(ended.stderr).not.toContain('turn 3')
    expect((await ran(folder, 'retry', runId, '--max-requests', '5')).stderr).toContain('turn 5')
  })

  test('a rejection has its reason, and answers can be in a file', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'pay'))
    const [item] = JSON.parse((await ran(folder, 'resume', runId)).stdout) as { callId: string }[]
    const callId = item?.callId ?? ''
    writeFileSync(join(folder, 'answers.json'), JSON.stringify([{ callId, approved: false, reason: 'too much' }]))
    expect((await ran(folder, 'resume', runId, '--answers', 'answers.json')).stderr).toContain('too much')
    writeFileSync(join(folder, 'answers.json'), '{}')
    const again = runIdIn(await ran(folder, 'run', 'pay'))
    expect((await ran(folder, 'resume', again, '--answers', 'answers.json')).code).toBe(2)
    expect((await ran(folder, 'resume', again, '--approve', 'nobody')).code).toBe(2)
  })
})

describe('runs that were left', () => {
  test('CL-15 recover goes on with all that were interrupted, and passes over those under way', async () => {
    const folder = project()
    const killed = start(['run', 'slow'], { folder })
    await slowCall(folder)
    killed.child.kill('SIGKILL')
    await killed.ended
    rmSync(join(folder, 'slow.pid'))
    const alive = start(['run', 'slow'], { folder })
    await slowCall(folder)
    try {
      expect((await ran(folder, 'list')).stdout).toMatch(/running[\s\S]*interrupted/)
      const running = (await ran(folder, 'list', '--json', '--status', 'running')).stdout
      const { runId } = JSON.parse(running) as { runId: string }
      expect((await ran(folder, 'recover', runId)).code).toBe(6)
      writeFileSync(join(folder, 'go'), '')
      expect(await ran(folder, 'recover')).toMatchObject({ code: 0, stdout: 'Answer to: slow\n' })
      expect((await ran(folder, 'recover')).stderr).toContain('No run was interrupted.')
    } finally {
      alive.child.kill('SIGKILL')
      await alive.ended
    }
  })
})

describe('the store', () => {
  test('CL-17 list, inspect and replay change nothing in it', async () => {
    const folder = project()
    for (const prompt of ['look', 'pay', 'fail']) await ran(folder, 'run', prompt)
    const before = filesIn(join(folder, '.thinharness'))
    for (const args of [['list'], ['inspect', 'last'], ['inspect', 'last', '--events'], ['replay', 'last']])
      expect((await shell(args, { folder })).code).toBe(0)
    expect(filesIn(join(folder, '.thinharness'))).toEqual(before)
    const empty = project()
    expect((await ran(empty, 'list')).code).toBe(5)
    expect(existsSync(join(empty, '.thinharness'))).toBe(false)
  })

  test('list shows status, turns and prompt, the newest first, and takes a status and a limit', async () => {
    const folder = project()
    for (const prompt of ['look', 'pay']) await ran(folder, 'run', prompt)
    const lines = (await ran(folder, 'list')).stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[1]).toMatch(/^run_\w+ +paused .* 1 +pay$/)
    expect((await ran(folder, 'list', '--status', 'completed')).stdout.trimEnd().split('\n')).toHaveLength(2)
    expect((await ran(folder, 'list', '--limit', '1')).stdout.trimEnd().split('\n')).toHaveLength(2)
    const newest = lines[1]?.split(' ')[0] ?? ''
    expect((await ran(folder, 'list', '--before', newest)).stdout).not.toContain(newest)
  })

  test('a run is named by its id, the beginning of one, last, or a file', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'look'))
    for (const name of [runId, runId.slice(0, 12), runId.slice(4, 12), 'last', `.thinharness/runs/${runId}.jsonl`])
      expect((await ran(folder, 'inspect', name)).stdout).toContain(runId)
    await ran(folder, 'run', 'look')
    const both = await ran(folder, 'inspect', 'run_')
    expect(both.code).toBe(5)
    expect(both.stderr).toContain('begins the ids of 2 runs')
  })

  test('inspect shows one event, all, or the summary as JSON', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'look'))
    const { stdout } = await ran(folder, 'inspect', runId, '--event', '1')
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'run_started', prompt: 'look' })
    expect((await ran(folder, 'inspect', runId, '--event', '99')).code).toBe(5)
    expect(JSON.parse((await ran(folder, 'inspect', runId, '--json')).stdout)).toMatchObject({ status: 'completed' })
    const log = readFileSync(join(folder, '.thinharness', 'runs', `${runId}.jsonl`), 'utf8')
    expect((await ran(folder, 'inspect', runId, '--events')).stdout).toBe(log)
  })

  test('CL-16 replay says the first difference', async () => {
    const folder = project()
    await ran(folder, 'run', 'pay')
    expect(await ran(folder, 'replay', 'last')).toMatchObject({ code: 0, stdout: '' })
    const other = await shell(['replay', 'last'], { folder, env: { PAY_TEXT: 'Pays more.' } })
    expect(other.code).toBe(1)
    expect(other.stderr).toContain('pay')
  })

  test('fork begins a new run after a turn, with another prompt', async () => {
    const folder = project()
    const first = runIdIn(await ran(folder, 'run', 'look'))
    const forked = await ran(folder, 'fork', first, '--at', '2', '--prompt', 'and again')
    expect(forked).toMatchObject({ code: 0, stdout: 'Answer to: look and again\n' })
    expect(runIdIn(forked)).not.toBe(first)
  })

  test('a SQLite file holds the runs as well', async () => {
    const folder = project()
    const runId = runIdIn(await ran(folder, 'run', 'look', '--runs', 'runs.db'))
    expect((await ran(folder, 'inspect', 'last', '--runs', 'runs.db')).stdout).toContain(runId)
    expect((await ran(folder, 'replay', 'last', '--runs', 'runs.db')).code).toBe(0)
  })
})

describe('a conversation', () => {
  test('lines of a pipe are its messages, and --thread goes on with it', async () => {
    const folder = project()
    const first = await shell(['chat'], { folder, input: 'one\ntwo\n' })
    expect(first).toMatchObject({ code: 0, stdout: 'Answer to: one\nAnswer to: one two\n' })
    const next = await shell(['chat', '--thread', runIdIn(first)], { folder, input: 'three\n/exit\nfour\n' })
    expect(next.stdout).toBe('Answer to: one two three\n')
    expect((await shell(['chat'], { folder, input: 'pay\n' })).code).toBe(3)
    expect((await shell(['chat'], { folder, input: '/nothing\n' })).stderr).toContain('/help')
  })
})

describe('the program', () => {
  test('CL-19 help needs neither the harness nor prompts', () => {
    const loaded = new Set<string>()
    const visit = (path: string): void => {
      if (loaded.has(path)) return
      loaded.add(path)
      const text = readFileSync(path, 'utf8')
      for (const [, target = ''] of text.matchAll(/^(?:import|export)[^'"]*?["']([^'"]+)["'];?$/gm))
        if (target.startsWith('.')) visit(join(dirname(path), target))
        else loaded.add(target)
    }
    visit(PROGRAM)
    const packages = [...loaded].filter((name) => !name.startsWith('/') && !name.startsWith('node:'))
    expect(packages.sort()).toEqual(['commander', 'fast-string-truncated-width'])
    const bytes = [...loaded].filter((name) => name.startsWith('/')).reduce((sum, path) => sum + statSync(path).size, 0)
    expect(bytes).toBeLessThan(40_000)
  })

  test('CL-20 every example of the help runs', async () => {
    const folder = project()
    await using provider = await scriptedProvider()
    provider.always(() => 'one, two, three')
    const env = { OPENAI_API_KEY: 'key', OPENAI_BASE_URL: provider.url.responses }
    await ran(folder, 'run', 'look')
    const names = [...(await ran(folder, '--help')).stdout.matchAll(/^ {2}(\w+) /gm)].map(([, name = '']) => name)
    const commands = names.filter((name) => name !== 'help')
    expect(commands).toHaveLength(15)
    for (const command of commands) {
      const { stdout } = await ran(folder, command, '--help')
      const examples = [...stdout.matchAll(/^ {2}\$ thinharness (.*)$/gm)].map(([, example = '']) => example)
      expect(examples, command).not.toEqual([])
      for (const example of examples) {
        const { code, stderr } = await (command === 'serve'
          ? served(example, folder, env)
          : script(`thinharness ${example}`, { folder, env }))
        const isUsed = code !== 2 || stderr.includes('waits for nobody')
        expect({ example, isUsed, stderr }).toMatchObject({ isUsed: true })
      }
    }
  })

  test('CL-21 a pipe that is closed is no failure, and output is UTF-8 whatever the locale', async () => {
    const folder = project()
    await ran(folder, 'run', 'look')
    const lines = 'thinharness inspect last --events | head -n 1 > first.txt; echo "${PIPESTATUS[0]}"'
    const { stdout } = await script(lines, { folder })
    expect(stdout.trim()).toBe('0')
    const foreign = await shell(['run', 'größer 東京'], { folder, env: { LC_ALL: 'C' } })
    expect(foreign.stdout).toBe('Answer to: größer 東京\n')
  })

  test('text goes to a pipe as it is', async () => {
    expect((await ran(project(), 'run', 'wild')).stdout).toBe('a\u001B[31mred\u0007\n')
  })

  test('CL-22 probe shows what a model can do, and fails if it cannot be used', async () => {
    const folder = project()
    await using provider = await scriptedProvider()
    provider.always(() => 'ready')
    const env = { OPENAI_API_KEY: 'key', OPENAI_BASE_URL: provider.url.responses }
    const { code, stdout } = await shell(['probe', 'openai:gpt-5.5'], { folder, env })
    expect(code).toBe(1)
    expect(stdout).toMatch(/✓ answers[\s\S]*✗ tools[\s\S]*price/)
    expect((await ran(folder, 'probe')).code).toBe(2)
  })

  test('init makes an agent that works without a key, and overwrites nothing', async () => {
    const folder = project({ config: null })
    expect((await ran(folder, 'init', 'shop')).code).toBe(0)
    const place = join(folder, 'shop')
    expect((await shell(['run', 'Where is order 1042?'], { folder: place })).stdout).toContain('shipped')
    expect((await shell(['run', 'Refund order 1043'], { folder: place })).code).toBe(3)
    const again = await ran(folder, 'init', 'shop')
    expect(again.code).toBe(2)
    expect(again.stderr).toContain('is not empty')
  })
})
