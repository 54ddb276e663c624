/**
 * Ids in the examples of requests. `test/spec/examples.test.ts` replaces them by ids of objects that it creates, and
 * sends the examples.
 */
export const EXAMPLE_IDS = {
  account: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a01',
  node: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a02',
  pod: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a03',
  template: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a04',
  volume: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a05',
  backup: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a06',
  sshKey: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a07',
  apiKey: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a08',
  machineRequest: '6f0d1c0e-2b7e-4d55-9a1f-0c7b3f6c1a09',
} as const;
