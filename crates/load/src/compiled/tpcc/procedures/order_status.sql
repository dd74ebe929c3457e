CREATE OR REPLACE PROCEDURE tpcc_order_status(
    p_w_id int, p_d_id int, INOUT p_c_id int, INOUT p_c_last text, INOUT p_c_balance numeric, INOUT p_c_first text,
    INOUT p_c_middle text, INOUT p_o_id int, INOUT p_o_entry_d timestamp, INOUT p_o_carrier_id smallint, INOUT p_i_ids int[],
    INOUT p_supply_w_ids int[], INOUT p_quantities smallint[], INOUT p_amounts numeric[], INOUT p_delivery_ds timestamp[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_c_ids int[];
BEGIN
    IF p_c_last IS NOT NULL THEN
        SELECT array_agg(c_id ORDER BY c_first) INTO v_c_ids FROM customer
            WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_last = p_c_last;
        p_c_id := v_c_ids[(cardinality(v_c_ids) + 1) / 2];
    END IF;
    SELECT c_balance, c_first, c_middle, c_last INTO STRICT p_c_balance, p_c_first, p_c_middle, p_c_last FROM customer
        WHERE c_w_id = p_w_id AND c_d_id = p_d_id AND c_id = p_c_id;
    SELECT o_id, o_entry_d, o_carrier_id INTO STRICT p_o_id, p_o_entry_d, p_o_carrier_id FROM orders
        WHERE o_w_id = p_w_id AND o_d_id = p_d_id AND o_c_id = p_c_id ORDER BY o_id DESC LIMIT 1;
    SELECT array_agg(ol_i_id), array_agg(ol_supply_w_id), array_agg(ol_quantity), array_agg(ol_amount),
        array_agg(ol_delivery_d) INTO p_i_ids, p_supply_w_ids, p_quantities, p_amounts, p_delivery_ds FROM order_line
        WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id = p_o_id;
END $$
