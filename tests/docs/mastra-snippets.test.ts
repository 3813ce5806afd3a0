import { readdirSync, readFileSync } from 'node:fs'
import { scriptedProvider } from 'thinharness/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { inTemporaryFolder } from '../support/folder.js'

const page = readFileSync(new URL('../../docs/mastra-events.md', import.meta.url), 'utf8')
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
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

describe('docs/coming-from-mastra.md', () => {
  test('each of the 54 events of the controller has a place in the table, and each event named there exists', () => {
    const rows = [...page.matchAll(/^\| (`.*?) +\| (.*?) +\|$/gm)]
    const names = (text = ''): string[] => [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name)
    expect(EVENTS).toHaveLength(54)
    expect([...new Set(rows.flatMap(([, theirs]) => names(theirs)))].sort()).toEqual(EVENTS.toSorted())
    const ours = new Set(rows.flatMap(([, , mine]) => names(mine)).filter((name) => name.includes('_')))
    const known = [...read('docs/event-reference.md').matchAll(/^### `(\w+)`$/gm), ...threadEvents()].map(
      ([, name]) => name,
    )
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

  test('every snippet of the page is run', () => {
    const files = readdirSync(new URL('../../docs/snippets/coming-from-mastra', import.meta.url))
    expect(files).toEqual(['agent.ts'])
  })
})

/** The kinds of events of a thread, as declared. */
function threadEvents(): Iterable<RegExpMatchArray> {
  const [, payloads = ''] = read('src/session/thread/thread-events.ts').split('interface ThreadPayloads {')
  return payloads.matchAll(/^ {2}(\w+): /gm)
}
