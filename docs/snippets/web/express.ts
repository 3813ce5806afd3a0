import { getRequestListener } from '@hono/node-server'
import { fileLog, Harness } from 'thinharness'
import { createHandlers } from 'thinharness/ui'
import { userOf } from './user.js'

const log = fileLog('./runs')
const harness = new Harness({ model: 'openai:gpt-5.5', log })
const { aiSdk } = createHandlers({ harness, log, authorize: (request) => ({ resourceId: userOf(request) }) })

// app.use('/api', listener)
export const listener = getRequestListener(aiSdk)
