/** Command that tests a host before its provider adds it as a node. Pure. */

/** Anything else in the field is not an address, and could be read by the shell. */
const ADDRESS = /^[0-9a-fA-F.:]{2,45}$/;

/** `origin` is the address of the central API, whose time the command compares. */
export function doctorCommand(address: string, origin: string): string {
  const of = ADDRESS.test(address.trim()) ? address.trim() : '203.0.113.7';
  return `npm run agent -- doctor --address ${of} --time-from ${origin}/`;
}
