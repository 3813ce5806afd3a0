'use client'
import { useEffect, useState } from 'react'
import { ask } from '../agent.js'

/** The core runs in the page itself. */
export default function Page() {
  const [answer, setAnswer] = useState('')
  useEffect(() => void ask().then(setAnswer), [])
  return <p>{answer}</p>
}
