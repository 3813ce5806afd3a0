import { useState } from 'preact/hooks'
import type { Answer } from '#core/state/answers.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { callDetail } from '../../finding/call-detail.js'
import type { AskedOfCall, CallDetail } from '../../finding/call-detail.js'
import { objectsAt, textAt } from '../../reading/event-fields.js'
import type { CallNode } from '../../reading/nodes.js'
import { LineDiff } from '../text/edit-view.js'
import { Arguments, Result, clockOf, jsonIn } from './entry-row.js'
import { JsonView } from '../text/json-tree.js'
import { sendAnswers } from '../follow-run.js'
import { Facts, Section } from './section.js'
import { Content } from '../text/entry-content.js'
import type { Store } from '../store.js'
import { plainText, timeOf } from '../text/formatted-text.js'

/** Everything that the log says of a call. */
export function CallPanel({ call, store }: { readonly call: CallNode; readonly store: Store }) {
  const detail = callDetail(store.book, call)
  if (detail === null) return null
  return (
    <>
      {call.state === 'waiting' && <OpenItems detail={detail} store={store} />}
      <ArgumentTexts detail={detail} />
      {detail.envelope !== null && (
        <Section name={detail.envelope.ok ? 'Result' : 'Failure'} note={<Source source={detail.source} />}>
          <div class="box">
            <Result output={JSON.stringify(detail.envelope)} />
            <Content content={detail.parts} />
          </div>
          {Object.keys(detail.envelope.metadata).length > 0 && (
            <div class="box">
              <JsonView value={detail.envelope.metadata} />
            </div>
          )}
        </Section>
      )}
      {detail.value !== undefined && (
        <Section name="Value">
          <div class="box">
            <JsonView value={detail.value} />
          </div>
        </Section>
      )}
      <ChangedFile detail={detail} />
      {detail.asked.length > 0 && (
        <Section name="People">
          {detail.asked.map((asked) => (
            <AskedBox asked={asked} />
          ))}
        </Section>
      )}
      <CallFacts detail={detail} />
    </>
  )
}

function ArgumentTexts({ detail }: { readonly detail: CallDetail }) {
  const changes = [
    ['as the harness repaired them', detail.repairedArguments],
    ['as a hook changed them', detail.hookArguments],
    ['as a person changed them', detail.editedArguments],
  ] as const
  const [before, after] = [detail.rawArguments, detail.usedArguments].map(indented)
  return (
    <>
      <Section name="Arguments">
        <div class="box">
          <Arguments text={detail.usedArguments} />
        </div>
      </Section>
      {detail.rawArguments !== '' && changes.some(([, text]) => text !== null) && (
        <Section name={`Changed: ${changes.flatMap(([name, text]) => (text === null ? [] : [name])).join(', ')}`}>
          <LineDiff before={before ?? ''} after={after ?? ''} />
        </Section>
      )}
    </>
  )
}

function indented(text: string): string {
  const value = jsonIn(text)
  return value === undefined ? text : JSON.stringify(value, null, 2)
}

/** The text that a tool got against the text that it gave, if both are texts of several lines. */
function ChangedFile({ detail }: { readonly detail: CallDetail }) {
  const [given, got] = [jsonIn(detail.usedArguments), detail.envelope?.content]
  const before = isObject(given)
    ? Object.values(given).find((each) => typeof each === 'string' && each.includes('\n'))
    : undefined
  const [isShown, setShown] = useState(false)
  if (typeof before !== 'string' || typeof got !== 'string' || !got.includes('\n')) return null
  return (
    <Section
      name="Arguments and result"
      note={
        <button type="button" class="link" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          Compare
        </button>
      }
    >
      {isShown && <LineDiff before={before} after={got} />}
    </Section>
  )
}

function Source({ source }: { readonly source: JsonObject | null }) {
  if (source === null) return null
  return (
    <span class="tag">
      {plainText([textAt(source, 'kind'), textAt(source, 'name')].filter((text) => text !== '').join(': '))}
    </span>
  )
}

function AskedBox({ asked }: { readonly asked: AskedOfCall }) {
  return (
    <div class="box">
      <Facts
        facts={[
          [
            'Asked',
            `${clockOf(asked.at)} for ${asked.kind === 'approval' ? 'an approval' : asked.kind.replaceAll('_', ' ')}`,
          ],
          ['Because', decisionWords(asked.item['decision'])],
          ['Question', asked.item['payload'] !== undefined && <JsonView value={asked.item['payload']} />],
        ]}
      />
      {asked.answers.map((answer) => (
        <Facts
          facts={[
            ['Answer', <b>{`${answer.verdict} by ${plainText(answer.by ?? 'somebody')}, ${clockOf(answer.at)}`}</b>],
            ['Waited', timeOf(answer.at - asked.at)],
            ['Reason', plainText(answer.reason ?? '')],
            ['Words', answer.answer['answer'] !== undefined && <JsonView value={answer.answer['answer']} />],
            ['Arguments', answer.answer['editedArguments'] !== undefined && 'edited'],
          ]}
        />
      ))}
      {asked.answers.length === 0 && <p class="warned">Nobody has answered yet.</p>}
    </div>
  )
}

function decisionWords(decision: unknown): string {
  const [verdict, rule, reason] = ['decision', 'rule', 'reason'].map((name) => plainText(textAt(decision, name)))
  if (verdict === '') return ''
  return `${verdict}${rule === '' ? '' : ` by rule ${rule}`}${reason === '' ? '' : `: ${reason}`}`
}

function CallFacts({ detail }: { readonly detail: CallDetail }) {
  const { call } = detail
  const children = objectsAt({ all: [detail.childUsage] }, 'all')
  return (
    <Section name="Facts">
      <Facts
        facts={[
          ['State', call.state],
          ['Error', plainText(call.errorType ?? '')],
          ['Policy', decisionWords(detail.decision)],
          ['Begun', detail.begun.map(clockOf).join(', ')],
          ['Took', timeOf(call.durationMs ?? undefined)],
          [
            'Waited',
            call.waits.length > 0 && timeOf(call.waits.reduce((sum, { from, to }) => sum + ((to ?? from) - from), 0)),
          ],
          [
            'Interrupted',
            detail.interrupted.map(({ at, settledBy }) => `${clockOf(at)}, settled by ${settledBy}`).join('; '),
          ],
          ['Call id', <code>{plainText(call.callId)}</code>],
          ['Idempotency key', <code>{plainText(detail.idempotencyKey)}</code>],
          ['Retry budget', plainText(detail.retryKind ?? '')],
          ['No progress', detail.isStale && 'the call brought nothing new'],
          [
            'Recording',
            detail.isUnrecorded !== null && (detail.isUnrecorded ? 'does not have this call' : 'has this call'),
          ],
          [
            'Child runs',
            children.some((usage) => Object.keys(usage).length > 0) && <JsonView value={detail.childUsage} />,
          ],
        ]}
      />
    </Section>
  )
}

/** What a live run waits for, to be answered here if the page may. */
function OpenItems({ detail, store }: { readonly detail: CallDetail; readonly store: Store }) {
  const { live } = store.book.header
  const open = detail.asked.filter(({ answers }) => answers.length === 0)
  if (live === undefined || !live.approvals || open.length === 0) return null
  return (
    <>
      {open.map((asked) => (
        <AnswerForm asked={asked} send={(answer) => sendAnswers(live, store.rootOf(detail.call.runId), [answer])} />
      ))}
    </>
  )
}

interface AnswerFormProps {
  readonly asked: AskedOfCall
  readonly send: (answer: Answer) => Promise<string | null>
}

function AnswerForm({ asked, send }: AnswerFormProps) {
  const { callId, kind } = asked
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isSent, setSent] = useState(false)
  const answer = async (value: Answer) => {
    setSent(true)
    const refused = await send(value)
    setProblem(refused)
    setSent(refused === null)
  }
  const isApproval = kind === 'approval'
  const reason = text === '' ? {} : { reason: text }
  return (
    <Section name={isApproval ? 'Waits for an approval' : 'Waits for an answer'}>
      <form class="box answer" onSubmit={(event) => event.preventDefault()}>
        <label>
          {isApproval ? 'Reason, if you reject it' : 'Answer, as JSON or text'}
          <input value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {isApproval ? (
          <>
            <button type="button" disabled={isSent} onClick={() => void answer({ callId, approved: true })}>
              Approve
            </button>
            <button type="button" disabled={isSent} onClick={() => void answer({ callId, approved: false, ...reason })}>
              Reject
            </button>
          </>
        ) : (
          <>
            <button
              type="button"
              disabled={isSent}
              onClick={() => void answer({ callId, answer: (jsonIn(text) ?? text) as JsonValue })}
            >
              Send
            </button>
            <button type="button" disabled={isSent} onClick={() => void answer({ callId, declined: true })}>
              Decline
            </button>
          </>
        )}
        {problem !== null && (
          <p class="bad" role="alert">
            {plainText(problem)}
          </p>
        )}
      </form>
    </Section>
  )
}
