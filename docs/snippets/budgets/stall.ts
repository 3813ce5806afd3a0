import { Harness } from 'thinharness'

await using harness = new Harness({
  model: 'anthropic:claude-sonnet-5',
  root: './notes',
  stall: { noticeAfter: 2, answerAfter: 3, ignore: ['wait_for_build'] },
})

const stream = harness.stream('Which notes mention a deadline?')
for await (const event of stream) {
  if (event.kind === 'limit_warning') console.log(`${event.limitKind}: ${event.content}`)
}
console.log((await stream.result).text)
