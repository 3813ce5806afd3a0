// A fleet of workers on PostgreSQL: jobs that wait in the log, workers that are killed, a live list.
//   DATABASE_URL=postgres://… npm run example -- fleet
//   DATABASE_URL=postgres://… npm run example -- fleet --jobs 200 --workers 8 --kills 20
import { parseArgs } from 'node:util'
import { fleet } from './fleet.js'

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '48' },
    workers: { type: 'string', default: '4' },
    kills: { type: 'string', default: '6' },
  },
})
const databaseUrl = process.env['DATABASE_URL'] ?? ''
if (databaseUrl === '') {
  console.log(`This example needs PostgreSQL, and nothing else of it. If you have none, Docker has one:

  docker run --rm -e POSTGRES_PASSWORD=fleet -p 5432:5432 postgres:17
  DATABASE_URL=postgres://postgres:fleet@127.0.0.1:5432/postgres npm start`)
} else {
  const { jobs, workers, kills } = values
  const isRight = await fleet({ databaseUrl, jobs: Number(jobs), workers: Number(workers), kills: Number(kills) })
  process.exitCode = isRight ? 0 : 1
}
