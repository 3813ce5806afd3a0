import { Harness } from 'thinharness'
import type { WrapModelCall, WrapToolCall } from 'thinharness'

const timed: WrapModelCall = async (call, next) => {
  const turn = await next(call)
  const { usage } = turn.entry
  console.log(
    `${call.requestKind}: ${usage.outputTokens ?? 0} tokens of ${call.constants.settings.maxOutputTokens ?? 'any'}`,
  )
  return turn
}

const answers = new Map<string, unknown>()
const cached: WrapToolCall = async ({ tool, args }, next) => {
  if (tool.annotations?.readOnly !== true) return next()
  const key = JSON.stringify([tool.name, args])
  const answer = answers.get(key) ?? (await next())
  answers.set(key, answer)
  return answer
}

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  wrapModelCall: [timed],
  wrapToolCall: [cached],
})
console.log((await harness.run('What is in a.md?')).text)
