import { harness } from './rules.js'

const description = await harness.describe()
console.log(String(description))
const unguarded = description.tools.filter(({ approval, reach }) => approval === 'never' && reach?.writes !== undefined)
console.log(unguarded.map(({ name }) => name))
