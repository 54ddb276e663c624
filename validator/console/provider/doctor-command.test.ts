import { expect, it } from 'vitest';
import { doctorCommand } from './doctor-command.ts';

it.each([
  [' 198.51.100.4 ', '198.51.100.4'],
  ['2001:db8::1', '2001:db8::1'],
  ['', '203.0.113.7'],
  ['$(reboot)', '203.0.113.7'],
])('tests the host with the address %j', (address, used) => {
  expect(doctorCommand(address, 'https://central.example')).toBe(
    `npm run agent -- doctor --address ${used} --time-from https://central.example/`,
  );
});
