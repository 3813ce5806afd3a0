import { readdirSync, readFileSync } from 'node:fs'
import { Harness, memoryLog } from 'thinharness'
import { Sessions } from 'thinharness/session'
import type { ChatSnapshot } from 'thinharness/session'
import { ScriptedModel, scriptedProvider } from 'thinharness/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { heartbeat } from '../../docs/snippets/coming-from-mastra/heartbeat.js'
import { ask, throughGateway, useCounts } from '../../docs/snippets/coming-from-mastra/host.js'
import { continued } from '../../docs/snippets/coming-from-mastra/stored.js'
import { FakeLanguageModel, finished } from '../providers/ai-sdk/support.js'
import { inTemporaryFolder } from '../support/folder.js'

const page = readFileSync(new URL('../../docs/coming-from-mastra.md', import.meta.url), 'utf8')
const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The events of the session controller. */
const EVENTS = `agent_start agent_end message_start message_update message_end usage_update error info follow_up_queued
tool_input_start tool_input_delta tool_input_end tool_start tool_end tool_update shell_output tool_approval_required tool_suspended
mode_changed model_changed state_changed thread_created thread_changed thread_deleted task_updated subagent_start subagent_end
subagent_text_delta subagent_tool_start subagent_tool_end subagent_model_changed system_reminder reactive_signal state_signal
notification notification_summary goal_evaluation workspace_status_changed workspace_ready workspace_error om_status
om_buffering_start om_buffering_end om_buffering_failed om_observation_start om_observation_end om_observation_failed
om_reflection_start om_reflection_end om_reflection_failed om_activation om_thread_title_updated om_model_changed
display_state_changed`.split(/\s+/)

inTemporaryFolder()
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

describe('docs/coming-from-mastra.md', () => {
  test('each of the 54 events of the controller has a place in the table, and each event named there exists', () => {
    const [, table = ''] = page.split('\n## Events\n')
    const rows = [...(table.split('\n## ')[0] ?? '').matchAll(/^\| (`.*?) +\| (.*?) +\|$/gm)]
    const names = (text = ''): string[] => [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name)
    expect(EVENTS).toHaveLength(54)
    expect([...new Set(rows.flatMap(([, theirs]) => names(theirs)))].sort()).toEqual(EVENTS.toSorted())
    const ours = new Set(rows.flatMap(([, , mine]) => names(mine)).filter((name) => name.includes('_')))
    const known = [...read('docs/events.md').matchAll(/^### `(\w+)`$/gm), ...threadEvents()].map(([, name]) => name)
    expect([...ours].filter((name) => !known.includes(name))).toEqual([])
    expect(ours.size).toBeGreaterThan(25)
  })

  test('agent.ts: a message in a thread is answered', { timeout: 60_000 }, async () => {
    await using provider = await scriptedProvider()
    provider.calls('weather', { city: 'Nairobi' }).says('Yes, 21 degrees.')
    vi.stubEnv('OPENAI_API_KEY', 'test-key')
    vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    await import('../../docs/snippets/coming-from-mastra/agent.js')
    expect(log.mock.calls).toEqual([['Yes, 21 degrees.']])
  })

  test(
    'controller.ts: a plan is approved and carried out in the other mode, whose command waits for a person',
    { timeout: 60_000 },
    async () => {
      await using provider = await scriptedProvider()
      provider
        .calls('submit_plan', { title: 'Tidy', plan: '1. List the files.' })
        .calls('bash', { command: 'ls' })
        .says('Done.')
      vi.stubEnv('OPENAI_API_KEY', 'test-key')
      vi.stubEnv('OPENAI_BASE_URL', provider.url.responses)
      const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
      const { sessions, show } = await import('../../docs/snippets/coming-from-mastra/controller.js')
      const chat = await sessions.for({ resourceId: 'project' }).create()
      const drawn: ChatSnapshot[] = []
      const over = new AbortController()
      const shown = show('project', (snapshot) => drawn.push(snapshot), over.signal)
      await (
        await chat.send('Tidy up.')
      ).done
      await chat.answer([{ callId: chat.pending[0]?.callId ?? '', answer: { action: 'approved' } }])
      await chat.whenIdle()
      await chat.answer([{ callId: chat.pending[0]?.callId ?? '', approved: false, reason: 'Not now.' }])
      await chat.whenIdle()
      over.abort()
      await shown
      expect(log.mock.calls).toEqual([
        ['Waiting:', 'submit_plan'],
        ['Waiting:', 'bash'],
      ])
      expect(drawn.at(-1)).toMatchObject({ phase: 'idle', thread: { mode: 'build', settings: { theme: 'dark' } } })
      await sessions.close()
    },
  )

  test('stored.ts continues stored messages', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi.' },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello.' }] },
    ]
    const harness = new Harness({ model: new ScriptedModel().says('Again.') })
    expect((await continued(harness, messages, 'And?')).transcript).toHaveLength(4)
  })

  test('heartbeat.ts works every so often, not while the last work is in progress, also after a failure, until it is stopped', async () => {
    vi.useFakeTimers()
    const error = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const ends: (() => void)[] = []
    const work = vi.fn(() => new Promise<void>((resolve, reject) => ends.push(ends.length === 0 ? reject : resolve)))
    const stop = heartbeat(1000, work)
    await vi.advanceTimersByTimeAsync(3500)
    expect(work).toHaveBeenCalledTimes(1)
    ends[0]?.()
    await vi.advanceTimersByTimeAsync(1000)
    expect([work.mock.calls.length, error.mock.calls.length]).toEqual([2, 1])
    ends[1]?.()
    await vi.advanceTimersByTimeAsync(0)
    stop()
    await vi.advanceTimersByTimeAsync(5000)
    expect(work).toHaveBeenCalledTimes(2)
  })

  test('host.ts: ids of the host, counts of models, models of a gateway', { timeout: 60_000 }, async () => {
    const log = memoryLog()
    const harness = new Harness({ model: new ScriptedModel().always('Hi.'), builtinTools: [] })
    const sessions = new Sessions({ log, harness })
    let last = 0
    const sent = await ask(sessions.for({ resourceId: 'user-7' }), 'Hello?', () => `id-${(last += 1)}`)
    expect([sent.messageId, (await sent.done).text]).toEqual(['id-2', 'Hi.'])
    expect((await sessions.latest())?.threadId).toBe('id-1')
    expect([...(await useCounts(log)).values()]).toEqual([1])

    const asked: string[] = []
    const gateway = throughGateway(harness, (id) => {
      asked.push(id)
      return new FakeLanguageModel([
        [
          { type: 'text-start', id: '0' },
          { type: 'text-delta', id: '0', delta: 'From the gateway.' },
          { type: 'text-end', id: '0' },
          finished(),
        ],
      ])
    })
    const chat = await gateway.open()
    const end = await (await chat.send('Hello?', { model: 'acme:large' })).done
    expect([asked, end.error?.message ?? end.text]).toEqual([['acme:large'], 'From the gateway.'])
  })

  test('every snippet of the page is run', () => {
    const files = readdirSync(new URL('../../docs/snippets/coming-from-mastra', import.meta.url))
    expect(files.sort()).toEqual(['agent', 'controller', 'heartbeat', 'host', 'stored'].map((name) => `${name}.ts`))
  })
})

/** The kinds of events of a thread, as declared. */
function threadEvents(): Iterable<RegExpMatchArray> {
  const [, payloads = ''] = read('src/session/thread/thread-events.ts').split('interface ThreadPayloads {')
  return payloads.matchAll(/^ {2}(\w+): /gm)
}
