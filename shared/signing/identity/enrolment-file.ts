/** The provider's enrolment of this agent: a JSON file in its home, put there by `agent enrol accept`. */
import { join } from 'node:path';
import { readPrivateFile, replacePrivateFile } from '../../runtime/private-file.ts';
import type { Random } from '../../runtime/random.ts';
import { Enrolment } from './enrolment.ts';

export function enrolmentFile(home: string): string {
  return join(home, 'enrolment.json');
}

/** Null where there is none, or nothing that is one. */
export function readEnrolment(home: string): Enrolment | null {
  try {
    const bytes = readPrivateFile(enrolmentFile(home));
    if (bytes === null) return null;
    return Enrolment.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    return null;
  }
}

export function writeEnrolment(home: string, enrolment: Enrolment, random: Random): void {
  replacePrivateFile(enrolmentFile(home), `${JSON.stringify(enrolment)}\n`, random);
}
