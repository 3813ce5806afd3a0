import { openaiCompatible } from 'thinharness/providers'
import { conformance } from 'thinharness/testing'

const laws = conformance({
  api: 'chat',
  make: ({ fetch }) => openaiCompatible('any', { fetch, baseUrl: 'http://any.invalid/v1' }),
  cases: 5,
})
for (const { name, says, check } of laws) {
  await check()
  console.log(`${name} holds: ${says}`)
}
