/* Rankings side by side: sixteen are drawn and used in lockstep, one in each 32-bit lane of a 512-bit register.
 *
 * A group of them is stored rank by rank ("columns"): the item that ranking j places at rank k is
 * columns[k * PLR_LOCKSTEP + j]. A block of samples is eight groups.
 */
#ifndef PLR_LOCKSTEP_H
#define PLR_LOCKSTEP_H

#define PLR_LOCKSTEP 16

#endif
