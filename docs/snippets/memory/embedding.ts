import { embedding } from 'thinharness/providers'

const embed = embedding('google:gemini-embedding-001', { dimensions: 768 })
const [tide, cake] = await embed(['How high is the tide?', 'Which cake is best?'])

console.log(tide?.length, cake?.length, embed.usage.inputTokens)
