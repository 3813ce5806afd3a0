import { existsSync } from 'node:fs'

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** The browser of this machine; undefined: tests that need one are skipped. */
export const executablePath = BROWSERS.find((path) => existsSync(path))
