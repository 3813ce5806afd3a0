import { callTool } from 'thinharness'
import { orderStatus } from './shop.js'

const orders = new Map([['1042', { owner: 'ann', status: 'in transit' }]])

const { content } = await callTool(orderStatus, { id: '1042' }, { deps: { orders, user: 'bob' } })
console.log(content)
