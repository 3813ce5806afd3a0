import { Harness } from 'thinharness'

const harness = new Harness({ model: 'anthropic:claude-sonnet-5' })
const result = await harness.run('Name the three longest rivers of Africa.')
console.log(result.text)
