import { callTool } from 'thinharness'
import { reindex } from './bounds.js'

console.log(await callTool(reindex, { shards: 2 }))
console.log(await callTool(reindex, { shards: 'many' }))
