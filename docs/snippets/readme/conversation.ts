import { Harness } from 'thinharness'

await using harness = new Harness({ model: 'anthropic:claude-sonnet-5', root: './notes' })

const first = await harness.run('Who is at the meeting?')
const second = await harness.run('Write an agenda for them to agenda.md.', { history: first.resumeState })
console.log(second.text)
