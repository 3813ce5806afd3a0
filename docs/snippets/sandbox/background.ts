import { Harness } from 'thinharness'
import { shell } from 'thinharness/tools'

export const harness = new Harness({ root: './project', use: [shell({ network: ['registry.npmjs.org'] })] })
