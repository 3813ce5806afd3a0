import fc from 'fast-check'
import { rounds } from './length.js'

/** Loaded before each test file in the longer forms: properties that name no number of cases try more too. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), ...rounds(100) })
