/** NVIDIA's cards on the PCI bus, whether or not their driver is loaded. */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';

/** `module`: kernel driver to which the card is bound, such as `nvidia` or `nouveau`; null if there is none. */
export type PciCard = { address: string; module: string | null };

const DEVICES = '/sys/bus/pci/devices';
const MAX_ENTRIES = 4_096;
const NVIDIA = '0x10de';
/** PCI class of display controllers. */
const DISPLAY = /^0x03/;

/** Rejects if the bus cannot be read. Skips devices that vanish meanwhile. */
export async function nvidiaCardsOnBus(folder: string = DEVICES): Promise<PciCard[]> {
  const cardAt = async (address: string): Promise<PciCard | null> => {
    const vendor = await readFile(join(folder, address, 'vendor'), 'utf8');
    if (vendor.trim() !== NVIDIA) return null;
    if (!DISPLAY.test(await readFile(join(folder, address, 'class'), 'utf8'))) return null;
    const target = await readlink(join(folder, address, 'driver')).catch(() => null);
    return { address, module: target === null ? null : basename(target) };
  };
  const addresses = (await readdir(folder)).toSorted().slice(0, MAX_ENTRIES);
  const found = await Promise.all(addresses.map((each) => cardAt(each).catch(() => null)));
  return found.filter((card) => card !== null);
}
