/** Meaning of a status, which decides its colour and mark. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'idle';
