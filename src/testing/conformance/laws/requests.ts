import { messageOf } from '#contracts/errors.js'
import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import { toolCallsOf } from '#contracts/entry.js'
import { deepFreeze } from '#util/json.js'
import { expectSame } from '../../expect.js'
import { withoutMarks } from '../../wire/checks.js'
import { checkSaid, stringsWithin } from '../read-back.js'
import { talkAWhile, expectTurn } from '../talk.js'
import type { Case, LawText, Talk } from '../talk.js'

export const requestLaws = {
  round_trip: {
    says: 'The server reads exactly the transcript: nothing is lost, added or changed.',
    holds: async (given) => {
      const talk = given.talk()
      await talkAWhile(talk, { foreign: 0, streamed: given.chance.happens(0.5) })
      await checkLast(talk)
    },
  },
  foreign_transcript: {
    says: 'A transcript of other providers is continued with everything in it.',
    holds: async (given) => {
      const talk = given.talk()
      await talkAWhile(talk, { foreign: given.chance.pick([1, 0.5]), streamed: given.chance.happens(0.5) })
      await checkLast(talk)
    },
  },
  stable_prefix: {
    says: 'A request begins with the previous request, unchanged, so that the provider can cache it.',
    holds: async (given) => {
      const talk = given.talk()
      const first = given.stage.heard.length
      await talkAWhile(talk, { foreign: 0.3, streamed: given.chance.happens(0.5) })
      const bodies = given.stage.heard.slice(first).map(({ body }) => unmarkedBody(body))
      for (const [index, body] of bodies.slice(1).entries()) checkBeginning(bodies[index] ?? body, body)
    },
  },
  fresh_session: {
    says: 'A new session sends a whole transcript exactly as the session that grew with it.',
    holds: async (given) => {
      const talk = given.talk()
      const streamed = given.chance.happens(0.5)
      await talkAWhile(talk, { foreign: 0.3, streamed })
      talk.say()
      const reply = talk.generator.reply({ calls: 0 })
      await talk.turn(reply, { streamed })
      const grown = unmarkedBody(talk.request.body)
      expectTurn(await talk.askAgain({ reply }, { streamed }), given.stage)
      expectSame('the request of a fresh session', unmarkedBody(talk.request.body), grown)
    },
  },
  sessions: {
    says: 'Sessions of one model are independent.',
    holds: async (given) => {
      const talks = [given.talk('left'), given.talk('right')] as const
      for (let round = 0; round < 3; round++) {
        for (const talk of talks) {
          await talk.say().hear(talk.generator.reply({ calls: 0 }))
          checkSaid(talk.request, talk.transcript.slice(0, -1), talk.constants)
        }
      }
    },
  },
  media: {
    says: 'Images, files and audio are sent, or refused, or named as left out: never dropped silently.',
    holds: async (given) => {
      for (const [index, part] of MEDIA.entries()) {
        await checkMediaInPrompt(given, part, MARKS[index] ?? '')
        await checkMediaInResult(given, part, MARKS[index] ?? '')
      }
    },
    share: 0,
  },
} as const satisfies Readonly<Record<string, LawText>>

async function checkLast(talk: Talk): Promise<void> {
  talk.say()
  const asked = [...talk.transcript]
  await talk.turn()
  checkSaid(talk.request, asked, talk.constants)
}

/** Without the cache marks, which may move. */
function unmarkedBody(body: unknown): Readonly<Record<string, unknown>> {
  return JSON.parse(withoutMarks(body)) as Readonly<Record<string, unknown>>
}

/** One list may have grown, the conversation; everything else is the same. */
function checkBeginning(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): void {
  expectSame('the fields of a later request', Object.keys(after).sort(), Object.keys(before).sort())
  const changed = Object.keys(before).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
  const [conversation = '', other] = changed
  if (other !== undefined)
    throw new Error(`Two fields of a later request differ, \`${conversation}\` and \`${other}\`.`)
  const [earlier, later] = [before[conversation], after[conversation]]
  if (!Array.isArray(earlier) || !Array.isArray(later))
    throw new Error(`\`${conversation}\` of a later request differs.`)
  for (const [index, message] of earlier.entries()) {
    expectSame(`\`${conversation}[${index}]\` of a later request`, later[index], message)
  }
}

const MARKS = ['aW1hZ2UtbWFyaw', 'cGRmLW1hcms', 'dGV4dC1tYXJr', 'YXVkaW8tbWFyaw', 'YmluYXJ5LW1hcms']

type Medium = ContentPart & { readonly mediaType: string; readonly data: string }

/** Each of a kind that some API takes. */
const MEDIA: readonly Medium[] = [
  { type: 'image', mediaType: 'image/png', data: `iVBORw0KGgoA${MARKS[0]}==` },
  { type: 'file', mediaType: 'application/pdf', data: `JVBERi0x${MARKS[1]}=`, name: 'a.pdf' },
  { type: 'file', mediaType: 'text/plain', data: `${MARKS[2]}`, name: 'a.txt' },
  { type: 'audio', mediaType: 'audio/wav', data: `${MARKS[3]}==` },
  { type: 'file', mediaType: 'application/zip', data: `${MARKS[4]}==`, name: 'a.zip' },
]

async function checkMediaInPrompt(given: Case, part: Medium, mark: string): Promise<void> {
  const talk = given.talk()
  const content = [{ type: 'text', text: 'Look.' } as const, part]
  talk.transcript.push(deepFreeze({ role: 'user', ...talk.generator.stamp(), content }))
  await checkMedium(talk, part, { mark, maySay: false })
}

async function checkMediaInResult(given: Case, part: Medium, mark: string): Promise<void> {
  const talk = given.talk().say()
  const turn = await talk.hear(talk.generator.reply({ calls: 1 }))
  const envelope = { type: 'text', text: '{"ok":true,"content":"","metadata":{}}' } as const
  const result = talk.transcript.pop() as TranscriptEntry & { role: 'tool' }
  expectSame('the calls of a reply with one call', toolCallsOf(turn.entry.parts).length, 1)
  talk.transcript.push(deepFreeze({ ...result, content: [envelope, part], isError: false }))
  await checkMedium(talk, part, { mark, maySay: true })
}

interface WantedMedium {
  readonly mark: string
  /** The request may name the medium instead of carrying it. */
  readonly maySay: boolean
}

/** The request carries the medium, or the adapter refuses it and names it. */
async function checkMedium(talk: Talk, part: Medium, wanted: WantedMedium): Promise<void> {
  const { stage } = talk
  const sent = stage.heard.length
  const outcome = await talk.ask({ reply: talk.generator.reply({ calls: 0 }) })
  if (outcome.kind === 'turn') {
    checkCarried(talk, part, wanted)
    return
  }
  if (stage.refusal !== null) expectTurn(outcome, stage)
  expectSame('the requests sent for refused input', stage.heard.length - sent, 0)
  const message = messageOf(outcome.error)
  if (message.includes(part.type) || message.includes(part.mediaType)) return
  throw new Error(`\`${part.mediaType}\` is refused without saying so: ${message}`)
}

function checkCarried({ request }: Talk, part: Medium, { mark, maySay }: WantedMedium): void {
  const texts = stringsWithin(request.body)
  const plain = Buffer.from(part.data, 'base64').toString()
  if (texts.some((text) => text.includes(mark) || text.includes(plain))) return
  if (maySay && texts.some((text) => text.includes(part.mediaType) || text.includes(`\`${part.type}\``))) return
  throw new Error(`The ${part.type} of type \`${part.mediaType}\` is dropped silently.`)
}
