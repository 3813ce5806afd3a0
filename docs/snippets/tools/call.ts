import { callTool } from 'thinharness'
import { reindex } from './bounds.js'

const result = await callTool(reindex, { shards: 2 })
console.log(result.ok, JSON.stringify(result.value))

const rejected = await callTool(reindex, { shards: 'many' })
console.log(rejected.ok, rejected.content)
