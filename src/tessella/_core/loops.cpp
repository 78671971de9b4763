// The inner loops for one instruction set, TESSELLA_SET. See loops.hpp for what must not be used.
#include "loops.hpp"

#include "panel_loops.hpp"
#include "sweep_loops.hpp"

#define TESSELLA_TEXT(name) #name
#define TESSELLA_NAME(name) TESSELLA_TEXT(name)

namespace tessella {
namespace TESSELLA_SET {

extern const Loops kLoops;  // a constant is visible in its own file only, unless declared so
const Loops kLoops = {
    TESSELLA_NAME(TESSELLA_SET),
    {product_rows<float>, kernel_rows<float>, kernel_row<float>, update_and_find_up<float>,
     find_partner<float>, add_row<float>},
    {product_rows<double>, kernel_rows<double>, kernel_row<double>, update_and_find_up<double>,
     find_partner<double>, add_row<double>},
    apply_strip,
    absolute_sum,
    solved_squares,
    values_at,
    extremes_of,
};

}  // namespace TESSELLA_SET
}  // namespace tessella
