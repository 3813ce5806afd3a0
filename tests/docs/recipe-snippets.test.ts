import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { callTool, defineTool, fileLog, Harness, memoryLog } from 'thinharness'
import type { TranscriptEntry } from 'thinharness'
import { policy } from 'thinharness/policy'
import { Sessions } from 'thinharness/session'
import { ScriptedModel } from 'thinharness/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { dockerBash } from '../../docs/snippets/subjects/docker-bash.js'
import { editMessage } from '../../docs/snippets/subjects/edit-message.js'
import { moveLogs } from '../../docs/snippets/subjects/move-logs.js'
import { playbookTool } from '../../docs/snippets/subjects/playbooks.js'
import { responsesServer } from '../../docs/snippets/subjects/responses-server.js'
import { slice } from '../../docs/snippets/subjects/slice.js'
import { budgetOf, spentOn } from '../../docs/snippets/subjects/spending.js'
import { refundAfterLookUp } from '../../docs/snippets/subjects/step-tools.js'
import { onRendered, renderTool } from '../../docs/snippets/subjects/webhook.js'
import type { JobCall } from '../../docs/snippets/subjects/webhook.js'
import { inTemporaryFolder } from '../support/folder.js'

inTemporaryFolder()
afterEach(() => void vi.useRealTimers())

function toolNamed(name: string, handler: () => unknown = () => `Ran ${name}.`) {
  return defineTool({ name, description: 'Works.', parameters: {}, handler })
}

/** What the model was told by tools. */
function toldBy(transcript: readonly TranscriptEntry[]): readonly string[] {
  return transcript.flatMap((entry) => (entry.role === 'tool' ? [JSON.stringify(entry.content)] : []))
}

test('docs/users.md: what a user has spent on a day counts, whoever else runs, and stops the run that does not fit', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const log = memoryLog()
  // A run costs 0.15 dollars, and reserves about 11 before.
  const prices = { unknown: { inputPerMillion: 1e4, outputPerMillion: 1e4 } }
  const model = ScriptedModel.each(() => new ScriptedModel().says('Hi.'))
  await using harness = new Harness({ model, log, prices, builtinTools: [], settings: { maxOutputTokens: 20 } })
  const runOf = async (resourceId: string, day: string): Promise<void> => {
    vi.setSystemTime(`${day}T12:00:00Z`)
    await harness.run('Hello?', { metadata: { resourceId } })
  }
  await runOf('ana', '2026-03-01')
  for (const user of ['ana', 'bob', 'ana']) await runOf(user, '2026-03-02')
  expect(await spentOn(log, 'ana')).toBeCloseTo(0.3)
  expect(await spentOn(log, 'ana', '2026-03-01')).toBeCloseTo(0.15)
  expect(await spentOn(log, 'bob')).toBeCloseTo(0.15)

  const [budget, other] = await Promise.all([budgetOf(log, 'ana', 15), budgetOf(log, 'ana', 15)])
  expect(other).toBe(budget)
  expect(await budgetOf(log, 'bob')).toMatchObject({ costUsd: 2, spent: expect.closeTo(0.15) as number })
  expect(budget.spent).toBeCloseTo(0.3)
  const options = { metadata: { resourceId: 'ana' }, budget }
  await harness.run('Hello?', options)
  await expect(harness.run('A long question. '.repeat(1_000), options)).rejects.toMatchObject({ code: 'limit_reached' })
  expect(budget.spent).toBeCloseTo(await spentOn(log, 'ana'))
  vi.setSystemTime('2026-03-03T12:00:00Z')
  expect((await budgetOf(log, 'ana', 15)).spent).toBe(0)
})

test('docs/workflows.md: the webhook continues the run in another process, or declines; early and double ones are refused', async () => {
  const log = memoryLog()
  const jobs: { readonly key: string; readonly video: string; readonly call: JobCall }[] = []
  const early: unknown[] = []
  const service = {
    async start(job: (typeof jobs)[number]) {
      if (jobs.length === 0)
        early.push(await onRendered(second, job.call, 'too early').catch((error: unknown) => error))
      jobs.push(job)
    },
  }
  const tools = [renderTool(service)]
  const begins = new ScriptedModel().calls('render_video', { video: 'a' })
  const goesOn = new ScriptedModel().calls('render_video', { video: 'b' }).says('One of two.')
  await using first = new Harness({ model: begins, log, tools })
  await using second = new Harness({ model: goesOn, log, tools })

  expect((await first.run('Render both.')).status).toBe('paused')
  expect(early).toMatchObject([{ code: 'run_owned' }])
  const [a] = jobs
  expect((await onRendered(second, a!.call, 'https://videos.test/a')).status).toBe('paused')
  await expect(onRendered(second, a!.call, 'again')).rejects.toMatchObject({ code: 'invalid_answer' })
  const b = jobs.at(-1)
  const { text, transcript } = await onRendered(second, b!.call, null)
  await expect(onRendered(second, b!.call, null)).rejects.toMatchObject({ code: 'invalid_state' })

  expect(text).toBe('One of two.')
  expect(toldBy(transcript)).toEqual([
    expect.stringContaining('The video is at https://videos.test/a.'),
    expect.stringContaining('The video could not be rendered.'),
  ])
  // The handler runs again with the answer: the service starts the same job.
  expect(new Set(jobs.map(({ key, video }) => `${video} ${key}`)).size).toBe(2)
})

test('docs/settings.md: a tool is offered only after another one was called, and is no protection before', async () => {
  const model = new ScriptedModel().calls('look_up').calls('refund').says('Done.')
  const options = { tools: [toolNamed('look_up'), toolNamed('refund')], use: [refundAfterLookUp], builtinTools: [] }
  await using harness = new Harness({ model, instructions: 'Be kind.', ...options })
  await harness.run('Refund it.')
  expect(
    model.requests.map(({ constants }) => [constants.tools.map(({ name }) => name).join(), constants.instructions]),
  ).toEqual([
    ['look_up', 'Be kind.'],
    ['look_up,refund', 'Be kind.\nYou may now refund.'],
    ['look_up,refund', 'Be kind.\nYou may now refund.'],
  ])
  await using other = new Harness({ model: new ScriptedModel().calls('refund').says('Done.'), ...options })
  expect(toldBy((await other.run('Refund it.')).transcript)).toEqual([expect.stringContaining('Ran refund.')])
})

test('docs/skills.md: the model sees the names of the playbooks, and reads the text of one', async () => {
  const release = { name: 'release', description: 'How to release.', text: '1. Run the tests.' }
  const hiring = { name: 'hiring', description: 'How to hire.', text: '1. Ask Ana.' }
  const model = new ScriptedModel()
    .calls('read_playbook', { name: 'secret' })
    .calls('read_playbook', { name: 'release' })
    .says('Done.')
  await using harness = new Harness({ model, builtinTools: [] })
  const { transcript } = await harness.run('Release.', { tools: [playbookTool([release, hiring])] })
  const [offered] = model.requests[0]!.constants.tools
  expect(offered?.description).toContain('- release: How to release.\n- hiring: How to hire.')
  expect(JSON.stringify(offered)).not.toContain('Run the tests')
  expect(toldBy(transcript)).toEqual([
    expect.stringContaining('Invalid arguments'),
    expect.stringContaining('1. Run the tests.'),
  ])
})

test('docs/messages.md: an edited message has what was before it, in a new conversation of the same owner', async () => {
  await using harness = new Harness({ model: new ScriptedModel().always('Yes.') })
  await using all = new Sessions({ harness, log: memoryLog() })
  const sessions = all.for({ resourceId: 'ana' })
  const saidIn = async (threadId: string): Promise<readonly string[]> =>
    (await sessions.messages(threadId)).flatMap((entry) =>
      entry.role === 'user' ? entry.content.map((part) => (part.type === 'text' ? part.text : '')) : [],
    )
  const chat = await sessions.open('t')
  for (const text of ['One?', 'Two?', 'Three?']) await (await chat.send(text)).done
  const [first, , second] = await sessions.messages('t')
  const edited = async (entryId = ''): Promise<readonly string[]> => {
    const { threadId } = await editMessage(sessions, { threadId: 't', entryId }, 'Edited?')
    await (await sessions.open(threadId)).whenIdle()
    return saidIn(threadId)
  }
  expect(await edited(second?.id)).toEqual(['One?', 'Edited?'])
  expect(await edited(first?.id)).toEqual(['Edited?'])
  await expect(edited('unknown')).rejects.toThrow('There is no such message.')
  expect(await saidIn('t')).toEqual(['One?', 'Two?', 'Three?'])
})

test('docs/open-responses.md: who has a key gets an answer, and nobody else reads it', async () => {
  await using harness = new Harness({ model: new ScriptedModel().says('Hello.') })
  await using sessions = new Sessions({ harness, log: memoryLog() })
  const users = new Map([
    ['Bearer a', 'ana'],
    ['Bearer b', 'bob'],
  ])
  const app = responsesServer(sessions, ({ headers }) => users.get(headers.get('authorization') ?? '') ?? null)
  const ask = (authorization: string, id?: string) => {
    const headers = { authorization, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'support', input: 'Hi.' })
    return id === undefined
      ? app.request('/v1/responses', { method: 'POST', headers, body })
      : app.request(`/v1/responses/${id}`, { headers })
  }
  expect((await ask('Bearer wrong')).status).toBe(401)
  const response = await ask('Bearer a')
  expect(response.status).toBe(200)
  const { id, output } = (await response.json()) as { readonly id: string; readonly output: unknown }
  expect(JSON.stringify(output)).toContain('Hello.')
  expect([(await ask('Bearer a', id)).status, (await ask('Bearer b', id)).status]).toEqual([200, 404])
})

test('docs/hosting.md: a run goes on from slice to slice, and no completed call is repeated', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const log = fileLog('runs')
  let begins = (): void => undefined
  let release: (result: string) => void = () => undefined
  const calls: string[] = []
  const hang = (what: string): Promise<string> => {
    calls.push(what)
    begins()
    return new Promise((resolve) => (release = resolve))
  }
  const endless = defineTool({
    name: 'endless',
    description: 'Works until it is stopped.',
    parameters: {},
    handler: async (_args, { signal }) => {
      void hang('endless')
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('Stopped.'))))
    },
  })
  const tools = [toolNamed('quick', () => calls.push('quick')), toolNamed('slow', () => hang('slow')), endless]
  const next = (model: ScriptedModel) => slice({ model, log, tools }, { runId: 'r1', prompt: 'Work.' })
  /** A slice whose time is over while something of it does not end. */
  const cutOff = async (model: ScriptedModel, then = (): unknown => undefined) => {
    const hasBegun = new Promise<void>((resolve) => (begins = resolve))
    const result = next(model)
    await hasBegun
    await vi.advanceTimersByTimeAsync(45_000)
    await then()
    return result
  }

  const endsInTime = async () => {
    await vi.advanceTimersByTimeAsync(4_000)
    release('Slow result.')
  }
  // A request is cut off: the next slice sends it again. The slow tool ends within the 5 seconds that it has.
  expect(await cutOff(new ScriptedModel().calls('quick').replies(() => hang('request')))).toBeNull()
  expect(await cutOff(new ScriptedModel().calls('slow'), endsInTime)).toBeNull()
  const stop = () => vi.advanceTimersByTimeAsync(5_000)
  expect(await cutOff(new ScriptedModel().calls('endless'), stop)).toBeNull()
  const result = await next(new ScriptedModel().says('Done.'))
  expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
  expect(toldBy(result!.transcript)).toEqual([
    expect.any(String),
    expect.stringContaining('Slow result.'),
    expect.stringContaining('it is unknown whether it took effect'),
  ])
  expect(calls).toEqual(['quick', 'request', 'slow', 'endless'])
  // Nothing is left to do: the same result, without a request.
  expect((await next(new ScriptedModel()))?.text).toBe('Done.')
})

test('docs/hosting.md: commands run in the container, their failures are results, and policies for `bash` apply', async () => {
  mkdirSync('bin')
  writeFileSync('bin/docker', '#!/bin/sh\necho "$@" >> "$DOCKER_CALLS"\nshift 6\nexec "$@"\n', { mode: 0o755 })
  vi.stubEnv('DOCKER_CALLS', resolve('calls'))
  vi.stubEnv('PATH', [resolve('bin'), process.env['PATH']].join(delimiter))
  const bash = dockerBash('box')
  const told = async (command: string) => JSON.parse((await callTool(bash, { command })).content) as unknown
  expect(await told('echo hi')).toEqual({ exit_code: 0, stdout: 'hi\n', stderr: '' })
  expect(await told('echo no >&2; exit 3')).toEqual({ exit_code: 3, stdout: '', stderr: 'no\n' })
  const calls = readFileSync('calls', 'utf8')
  expect(calls.split('\n')[0]).toBe('exec --workdir /work box timeout 120 bash -c echo hi')

  const model = new ScriptedModel().calls('bash', { command: 'cd a; npm publish' }).says('Denied.')
  const use = [policy([{ decision: 'deny', command: 'npm *' }])]
  await using harness = new Harness({ model, builtinTools: [], tools: [bash], use })
  expect(toldBy((await harness.run('Publish.')).transcript)).toEqual([expect.stringContaining('a policy denies it')])
  expect(readFileSync('calls', 'utf8')).toBe(calls)
})

test('docs/storage.md: what moves to another store is counted and what does not is named', async () => {
  const [log, warn] = [vi.spyOn(console, 'log').mockReturnValue(), vi.spyOn(console, 'warn').mockReturnValue()]
  const [from, to] = [fileLog('runs'), memoryLog()]
  const harness = new Harness({ model: new ScriptedModel().always('Hi.'), log: from, builtinTools: [] })
  await harness.run('Hi.', { runId: 'run_1' })
  await harness.run('Hi.', { runId: 'run_2' })
  await from.claim({ kind: 'run', id: 'run_2' }, 'somebody', 60_000)
  await moveLogs(from, to)
  expect([log.mock.calls, warn.mock.calls]).toEqual([[['1 logs were copied.']], [['Not copied: run run_2']]])
  expect((await to.inspect({ kind: 'run', id: 'run_1' }))?.status).toBe('completed')
  vi.restoreAllMocks()
})
