import { jsonOr } from '#util/json.js'
import { textOf, toolCallsOf } from '#contracts/entry.js'
import type { ModelDelta, ModelTurn } from '#core/model-session.js'
import { expectSame } from '../../expect.js'
import { atRandom, byteByByte } from '../generate.js'
import type { GivenReply } from '../generate.js'
import { resultContents, toolMessages, stringsWithin } from '../read-back.js'
import { expectTurn } from '../talk.js'
import type { LawText } from '../talk.js'

export const replyLaws = {
  whole_and_streamed: {
    says: 'A reply is the same turn whether it comes whole or as a stream.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      const whole = withoutRaw(expectTurn(await talk.askAgain({ reply: reply }, { streamed: false }), given.stage))
      const streamed = withoutRaw(expectTurn(await talk.askAgain({ reply: reply }, { streamed: true }), given.stage))
      expectSame('the streamed turn', streamed, whole)
      expectSame('the text', textOf(whole.entry.parts), replyTexts(reply, 'text').join(''))
      const calls = reply.parts.filter((part) => part.type === 'call')
      const made = toolCallsOf(whole.entry.parts)
      expectSame('the tools called', callNames(made), callNames(calls))
      for (const [index, call] of calls.entries()) {
        const wanted: unknown = JSON.parse(call.arguments)
        expectSame(`the arguments of call ${index + 1}`, JSON.parse(made[index]?.arguments ?? 'null'), wanted)
      }
    },
  },
  any_cut: {
    says: 'However the bytes of an answer are cut, the turn and its deltas are the same.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      for (const streamed of [true, false]) {
        const once = await talk.askAgain({ reply: reply }, { streamed })
        const turn = withoutRaw(expectTurn(once, given.stage))
        for (const cut of [byteByByte, atRandom(given.chance, 7), atRandom(given.chance, 200)]) {
          const other = await talk.askAgain({ reply: reply, cut }, { streamed })
          expectSame('the turn of an answer in pieces', withoutRaw(expectTurn(other, given.stage)), turn)
          expectSame('its deltas', joinDeltas(other.deltas), joinDeltas(once.deltas))
        }
      }
    },
    share: 0.5,
  },
  deltas: {
    says: 'The deltas add up to the reply: its text, its reasoning, the arguments of each call.',
    holds: async (given) => {
      const talk = given.talk().say()
      const outcome = await talk.askAgain(
        { reply: talk.generator.reply(), cut: atRandom(given.chance, 50) },
        { streamed: true },
      )
      const { parts } = expectTurn(outcome, given.stage).entry
      const calls = toolCallsOf(parts)
      const sent = joinDeltas(outcome.deltas)
      expectSame('the text of the deltas', sent['text_delta'] ?? '', textOf(parts))
      const thoughts = parts.map((part) => (part.type === 'reasoning' ? part.text : ''))
      expectSame('the reasoning of the deltas', sent['reasoning_delta'] ?? '', thoughts.join(''))
      for (const { callId, arguments: args } of calls) {
        const text = sent[`tool_input_delta ${callId}`] ?? '{}'
        expectSame(`the arguments in the deltas of \`${callId}\``, JSON.parse(text), JSON.parse(args))
      }
      const ids = outcome.deltas.filter(({ kind }) => kind === 'tool_input_delta').map(({ callId }) => callId)
      const strange = ids.find((id) => calls.every(({ callId }) => callId !== id))
      if (strange !== undefined)
        throw new Error(`A delta is about a call \`${strange}\`, which the reply does not make.`)
    },
  },
  unknown_blocks: {
    says: 'An unknown piece of a reply changes nothing else, and is sent back in its place.',
    holds: async (given) => {
      const talk = given.talk().say()
      const { generator } = talk
      const mark = generator.mark()
      const block = given.stage.api.unknownBlock?.(mark)
      if (block === undefined) return
      const [before, after] = [generator.text(), generator.text()]
      const parts = [
        { type: 'text', text: before },
        { type: 'block', data: block },
        { type: 'text', text: after },
      ] as const
      const reply = generator.replyOf([...parts, generator.call()])
      const turn = await talk.hear(reply, { streamed: given.chance.happens(0.5) })
      expectSame('the text around an unknown piece', textOf(turn.entry.parts), before + after)
      expectSame('the calls after an unknown piece', toolCallsOf(turn.entry.parts).length, 1)
      await talk.turn()
      if (talk.request.read.isContinuation === true) return
      const wanted = textOrder(given.stage.api.whole({ ...reply, model: 'm', body: {} }), [before, mark, after])
      expectSame(
        'the order in which the reply is sent back',
        textOrder(talk.request.body, [before, mark, after]),
        wanted,
      )
    },
    share: 0.5,
  },
  call_ids: {
    says: 'Every call has an id of its own, even if the provider gives none, or one twice.',
    holds: async (given) => {
      const talk = given.talk().say()
      const { generator } = talk
      const again = generator.callId()
      for (let round = 0; round < 2; round++) {
        const ids = generator.chance.pick([
          [null, null],
          [again, again],
          [null, again],
          [again, null],
        ])
        // Under one id, only calls of different tools are certainly two.
        const calls = ['read', 'look_up'].map((name, at) => ({ ...generator.call(ids[at]), name }))
        const reply = generator.replyOf(calls)
        const turn = await talk.hear(reply, { streamed: given.chance.happens(0.5) })
        const wanted = reply.parts.filter((part) => part.type === 'call')
        expectSame('the calls', callNames(toolCallsOf(turn.entry.parts)), callNames(wanted))
      }
      const all = talk.transcript.flatMap((entry) => (entry.role === 'tool' ? [entry.callId] : []))
      if (all.includes('')) throw new Error('A call has an empty id.')
      expectSame('the ids of all calls, without repetitions', [...new Set(all)], all)
      await talk.turn()
      const contents = resultContents(
        talk.transcript.filter((entry) => entry.role === 'tool'),
        talk.request,
      )
      const results = toolMessages(talk.request).map(({ content }) => content)
      expectSame('the results', results, contents)
    },
  },
  usage: {
    says: 'Usage is what the provider reported, and null if it reported nothing.',
    holds: async (given) => {
      const talk = given.talk().say()
      const reply = talk.generator.reply()
      for (const streamed of [true, false]) {
        const { usage } = expectTurn(await talk.askAgain({ reply: reply }, { streamed }), given.stage).entry
        expectSame('the input tokens', usage.inputTokens, reply.usage?.inputTokens)
        expectSame('the output tokens', usage.outputTokens, reply.usage?.outputTokens)
        for (const field of ['cacheReadTokens', 'cacheWriteTokens', 'reasoningTokens'] as const) {
          if (usage[field] !== null) expectSame(`\`${field}\``, usage[field], reply.usage?.[field])
        }
        const unpriced = expectTurn(
          await talk.askAgain({ reply: { ...reply, usage: null } }, { streamed }),
          given.stage,
        )
        const known = Object.values(unpriced.entry.usage).filter((tokens) => tokens !== null)
        expectSame('the usage of a reply that reports none', known, [])
      }
    },
  },
  finish_reasons: {
    says: 'A reply that was cut, refused, filtered, paused or cancelled is never a clean answer.',
    holds: async (given) => {
      const talk = given.talk().say()
      const { generator } = talk
      for (const finishReason of [
        'length',
        'refusal',
        'content_filter',
        'pause',
        'cancelled',
        'error',
        'other',
      ] as const) {
        const parts = [{ type: finishReason === 'refusal' ? 'refusal' : 'text', text: generator.text() }] as const
        for (const streamed of [true, false]) {
          const outcome = await talk.askAgain({ reply: generator.replyOf(parts, { finishReason }) }, { streamed })
          const isClean = outcome.kind === 'turn' && outcome.turn.entry.finishReason === 'stop'
          if (isClean) throw new Error(`A reply that ended by \`${finishReason}\` is reported as a clean answer.`)
        }
      }
      const calls = expectTurn(
        await talk.askAgain({ reply: generator.reply({ calls: 1 }) }, { streamed: true }),
        given.stage,
      )
      expectSame('the finish reason of a reply with calls', calls.entry.finishReason, 'tool_calls')
      const text = expectTurn(
        await talk.askAgain({ reply: generator.reply({ calls: 0 }) }, { streamed: true }),
        given.stage,
      )
      expectSame('the finish reason of an answer', text.entry.finishReason, 'stop')
    },
    share: 0.2,
  },
} as const satisfies Readonly<Record<string, LawText>>

/** A turn without its raw reply. Arguments are compared by value: not every API keeps their spelling. */
function withoutRaw({ raw, ...turn }: ModelTurn): Omit<ModelTurn, 'raw'> {
  const parts = turn.entry.parts.map((part) => (part.type === 'tool_call' ? withPlainArguments(part) : part))
  return { ...turn, entry: { ...turn.entry, parts } }
}

function withPlainArguments<T extends { readonly arguments: string }>(call: T): T {
  return { ...call, arguments: JSON.stringify(jsonOr(call.arguments, undefined)) }
}

function joinDeltas(deltas: readonly ModelDelta[]): Readonly<Record<string, string | undefined>> {
  const texts: Record<string, string> = {}
  for (const { kind, callId, text } of deltas) {
    const key = callId === undefined ? kind : `${kind} ${callId}`
    texts[key] = `${texts[key] ?? ''}${text}`
  }
  return Object.fromEntries(Object.entries(texts).sort(([left], [right]) => (left < right ? -1 : 1)))
}

function replyTexts({ parts }: GivenReply, type: 'text' | 'reasoning'): string[] {
  return parts.flatMap((part) => (part.type === type ? [part.text] : []))
}

function callNames(calls: readonly { readonly name: string }[]): string[] {
  return calls.map(({ name }) => name)
}

/** Texts in the order in which they are in a body; missing ones are left out. */
function textOrder(body: unknown, texts: readonly string[]): string[] {
  const all = stringsWithin(body).join('\n')
  const found = texts.filter((text) => all.includes(text))
  return found.sort((left, right) => all.indexOf(left) - all.indexOf(right))
}
